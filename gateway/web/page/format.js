// How the page says things: elements, tables, numbers, times.
"use strict";

const $ = (id) => document.getElementById(id);

// el makes an element. Text is never markup: names come from the plant.
function el(tag, attrs, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attrs || {})) if (v != null && v !== false) e.setAttribute(k, v);
  for (const c of children.flat()) if (c != null) e.append(c);
  return e;
}

function svg(tag, attrs, ...children) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(attrs)) e.setAttribute(k, v);
  e.append(...children);
  return e;
}

// fill gives an element these children. What is as it was stays, with the text that
// somebody has marked in it and the hint that is open over it.
function fill(e, children) {
  children.forEach((c, i) => {
    const old = e.children[i];
    if (!old) e.append(c);
    else if (!old.isEqualNode(c)) old.replaceWith(c);
  });
  while (e.children.length > children.length) e.lastElementChild.remove();
}

const setText = (e, t) => { if (e.textContent !== t) e.textContent = t; };

// Of a long table the first rows are shown, until somebody asks for all.
const first = matchMedia("(max-width: 44em)").matches ? 6 : 12, whole = new Set();

// table fills one with rows of cells: a string, a node, or {t, c}: a text or node
// and its class. The last cell of a row that is {note} goes under the others.
function table(id, head, rows, none) {
  const t = $(id), names = head.map((h) => h.replace("#", "")); // also in the cells, for a phone
  if (!t.tBodies.length) {
    t.append(el("thead"), el("tbody"));
    t.parentNode.after(el("button", { class: "more", type: "button", hidden: "" }));
    t.parentNode.nextElementSibling.addEventListener("click", (e) => {
      if (!whole.delete(id)) whole.add(id);
      t.redraw();
      e.target.focus();
    });
  }
  t.redraw = () => table(id, head, rows, none);
  const cell = (c, i) => el("td", { class: (c?.t ?? c) === "–" ? (c.c || "") + " none" : c?.c, "data-h": names[i] }, (c instanceof Node || typeof c !== "object" ? c : c?.t) ?? "");
  const body = [];
  for (const r of whole.has(id) ? rows : rows.slice(0, first)) {
    const note = r[r.length - 1]?.note, cells = "note" in Object(r[r.length - 1]) ? r.slice(0, -1) : r;
    body.push(el("tr", { class: note ? "noted" : null }, cells.map(cell)));
    if (note) body.push(el("tr", { class: "note" }, el("td", { colspan: head.length }, prose(note))));
  }
  if (!rows.length) body.push(el("tr", {}, el("td", { class: "muted" }, none)));
  fill(t.tHead, rows.length ? [el("tr", {}, head.map((h, i) => el("th", { scope: "col", class: h.startsWith("#") ? "n" : null }, names[i])))] : []);
  fill(t.tBodies[0], body);
  const more = t.parentNode.nextElementSibling;
  more.hidden = rows.length <= first;
  more.setAttribute("aria-expanded", whole.has(id));
  setText(more, whole.has(id) ? "Show fewer" : "Show all " + rows.length);
  // A table that is wider than its panel can be scrolled by keys.
  if (t.offsetWidth > t.parentNode.clientWidth) t.parentNode.tabIndex = 0;
  else t.parentNode.removeAttribute("tabindex");
}

function list(id, pairs) {
  fill($(id), pairs.filter((p) => p[1] != null && p[1] !== "").flatMap(([k, v, c]) => [el("dt", {}, k), el("dd", { class: c }, prose(v))]));
}

// tile says one thing at a glance: how it is (ok, warn, err), what, and a little more.
function tile(id, how, what, more) {
  const t = $("t-" + id);
  if (t.className !== how) t.className = how;
  setText(t.children[1], what);
  setText(t.children[2], more || "");
}

const num = (t, c) => ({ t: typeof t === "number" ? t.toLocaleString("en") : t, c: "n" + (c ? " " + c : "") });

// prose sets what stands between backticks as code.
function prose(t) {
  if (t instanceof Node) return t;
  return el("span", {}, String(t).split("`").map((part, i) => i % 2 ? el("code", {}, part) : part));
}

const many = (n, word) => n.toLocaleString("en") + " " + word + (n === 1 ? "" : "s");
const percent = (share) => (share === 0 || share >= 0.1 ? Math.round(100 * share) : (100 * share).toPrecision(2)) + " %";
const sum = (list, of) => list.reduce((n, x) => n + of(x), 0);

// signed writes a number with a true minus.
const signed = (t) => t.replace("-", "−");

function ms(v) {
  const a = Math.abs(v);
  if (a === 0) return "0 ms";
  if (a < 1) return signed(String(Math.round(v * 1000))) + " µs";
  if (a < 1000) return signed(v.toFixed(a < 100 ? 1 : 0)) + " ms";
  return span(v / 1000);
}

function span(s) {
  const a = Math.abs(s), sign = s < 0 ? "−" : "", two = (big, small) => sign + big + (small ? " " + small : "");
  if (a < 60) return sign + (a < 10 ? a.toFixed(1) : Math.round(a)) + " s";
  if (a < 3600) return two(Math.floor(a / 60) + " min", Math.floor(a % 60) && Math.floor(a % 60) + " s");
  if (a < 172800) return two(Math.floor(a / 3600) + " h", Math.floor(a % 3600 / 60) && Math.floor(a % 3600 / 60) + " min");
  return sign + Math.floor(a / 86400) + " days";
}

function bytes(b) {
  if (b < 0) return "not known";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (b >= 1024 && i < 4) { b /= 1024; i++; }
  return (i && b < 10 ? b.toFixed(1) : Math.round(b)) + " " + units[i];
}

function value(v) {
  if (v === null || v === undefined) return "–";
  if (typeof v !== "number") return String(v);
  return signed(Number.isInteger(v) ? v.toLocaleString("en") : String(Number(v.toPrecision(5))));
}

// The codes of UCUM that people write otherwise.
const units = { Cel: "°C", "[degF]": "°F", "[psi]": "psi", Ohm: "Ω", deg: "°", "1": "" };
const unit = (u) => (u || "").split(/([./])/).map((p) => (units[p] ?? p).replace(/^u(?=[msAVWNL]$)/, "µ")).join("");
const measured = (v, u) => value(v) + (u && v != null ? " " + unit(u) : "");

const clock = (t) => t.slice(11, 19);
// moment is a time of day, with its date where that is not the view's.
const moment = (at, t) => (at.slice(0, 10) === t.slice(0, 10) ? "" : t.slice(0, 10) + " ") + clock(t) + " UTC";
const before = (at, t) => (Date.parse(at) - Date.parse(t)) / 1000;

// ago is how long before the view's own time something was; the browser's clock
// is asked nothing.
const ago = (at, t) => t ? span(Math.max(0, before(at, t))) + " ago" : "never";
