// The page draws each view that the gateway sends; it asks for nothing else and
// keeps no more than the two latest, to tell rates.
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

// table fills one with rows of cells: a string, a node, or {t, c, n}.
function table(id, head, rows, none) {
  const t = $(id);
  if (!rows.length) {
    t.replaceChildren(el("tbody", {}, el("tr", {}, el("td", { class: "muted wrap" }, none))));
    return;
  }
  const names = head.map((h) => h.replace("#", "")); // also in the cells, for a phone
  const cell = (c, i) => c instanceof Node || typeof c !== "object" || c === null
    ? el("td", { "data-h": names[i] }, c ?? "") : el("td", { class: c.c, title: c.title, "data-h": names[i] }, c.t ?? "");
  t.replaceChildren(
    el("thead", {}, el("tr", {}, head.map((h) => el("th", { scope: "col", class: h.startsWith("#") ? "n" : null }, h.replace("#", ""))))),
    el("tbody", {}, rows.map((r) => el("tr", {}, r.map(cell)))));
}

function list(id, pairs) {
  $(id).replaceChildren(...pairs.filter((p) => p[1] != null && p[1] !== "").flatMap(([k, v, c]) => [el("dt", {}, k), el("dd", { class: c }, v)]));
}

const num = (t, c) => ({ t: typeof t === "number" ? t.toLocaleString("en") : t, c: "n " + (c || "") });

function ms(v) {
  const a = Math.abs(v);
  if (a < 1) return v.toFixed(3) + " ms";
  if (a < 1000) return v.toFixed(1) + " ms";
  return span(v / 1000);
}

function span(s) {
  const a = Math.abs(s), sign = s < 0 ? "−" : "";
  if (a < 60) return sign + (a < 10 ? a.toFixed(1) : Math.round(a)) + " s";
  if (a < 3600) return sign + Math.floor(a / 60) + " min " + Math.round(a % 60) + " s";
  if (a < 172800) return sign + Math.floor(a / 3600) + " h " + Math.floor(a % 3600 / 60) + " min";
  return sign + Math.floor(a / 86400) + " d";
}

function bytes(b) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (b >= 1024 && i < 4) { b /= 1024; i++; }
  return (i && b < 10 ? b.toFixed(1) : Math.round(b)) + " " + units[i];
}

function value(v) {
  if (v === null || v === undefined) return "–";
  if (typeof v === "number") return Number.isInteger(v) ? v.toLocaleString("en") : Number(v.toPrecision(6)).toString();
  return String(v);
}

// plain is a text without the quotes that a terminal shows.
const plain = (t) => t.replaceAll("`", "");

const clock = (t) => t.slice(11, 19);

// ago is how long before the view's own time something was; the browser's clock
// is asked nothing.
const ago = (at, t) => t ? span((Date.parse(at) - Date.parse(t)) / 1000) + " ago" : "never";

// counts are those of the last ten views, to tell rates.
let counts = [], drawn = false;

function count(v) {
  const now = { ms: v.gateway_ms };
  for (const i of v.inputs || []) now["input " + i.name] = i.counts.received;
  for (const u of v.uplinks || []) now["uplink " + u.name] = u.backlog;
  if (counts.length && now.ms < counts[counts.length - 1].ms) counts = []; // another gateway
  counts.push(now);
  if (counts.length > 10) counts.shift();
}

// rate is how fast a count rises, per second of gateway time; null while not known.
function rate(name) {
  const now = counts[counts.length - 1], then = counts[0], dt = (now.ms - then.ms) / 1000;
  return dt > 0 && name in then ? (now[name] - then[name]) / dt : null;
}

function drawVerdict(v) {
  const good = v.verdict === "trustworthy";
  document.querySelector("header").className = good ? "good" : "bad";
  document.title = (good ? "" : "⚠ ") + v.gateway + " – Tidemark";
  $("gateway").textContent = v.gateway;
  const first = (v.because || [])[0];
  const text = good ? "Trustworthy" : "Degraded: " + first.name + ", since " + clock(first.since) + " UTC";
  if ($("verdict").textContent !== text) $("verdict").textContent = text;
  $("link").textContent = v.at.slice(0, 10) + " " + clock(v.at) + " UTC · " + v.version + " · generation " + v.generation;
  $("because").hidden = good;
  $("faults").replaceChildren(...(v.because || []).map((f) =>
    el("li", {}, el("strong", {}, f.name), ": " + plain(f.detail), el("span", { class: "muted" }, " since " + f.since.slice(0, 19).replace("T", " ")))));
}

function drawClock(v) {
  const c = v.clock, servers = c.servers || [];
  const agree = servers.filter((s) => s.verdict === "truechimer").length;
  const trusted = ["synchronized", "free_running"].includes(c.state);
  list("clock", [
    ["State", c.state + (c.trust === "local" ? " (trust: local)" : ""), trusted ? "ok" : "warn"],
    ["Offset", c.has_offset ? ms(c.offset_lo_ns / 1e6) + " … " + ms(c.offset_hi_ns / 1e6) : null],
    ["Error at most", c.bound_ns >= 0 ? ms(c.bound_ns / 1e6) : "not known"],
    ["Servers agreeing", servers.length ? agree + " of " + servers.length : "none configured"],
    ["This host", c.host_method === "none" ? null : c.host_method],
    ["Next step", c.advice],
  ]);
  table("servers", ["Server", "Verdict", "#Offset", "#Answers"], servers.map((s) => [
    s.address, { t: s.verdict || "no answer yet", c: s.verdict === "truechimer" ? "ok" : "warn", title: s.error },
    num(s.answers ? ms(s.offset_ns / 1e6) : "–"), num(s.answers)]), "No time server is configured.");
  drawTrend(v.trend || []);
}

function drawTrend(points) {
  const known = points.filter((p) => p.bound_ns >= 0);
  if (!known.length) {
    $("trend").replaceChildren();
    $("trend-text").textContent = "No error bound in the last 24 hours.";
    return;
  }
  const logs = known.map((p) => Math.log10(Math.max(p.bound_ns, 1000)));
  const lo = Math.min(...logs), hi = Math.max(...logs, lo + .5);
  const end = points[points.length - 1].gateway_ms;
  const x = (p) => 288 - (end - p.gateway_ms) / 300000, y = (p) => 52 - (Math.log10(Math.max(p.bound_ns, 1000)) - lo) / (hi - lo) * 46;
  let d = "", gap = true;
  for (const p of points) {
    if (p.bound_ns < 0) { gap = true; continue; }
    d += (gap ? "M" : "L") + x(p).toFixed(1) + " " + y(p).toFixed(1);
    if (gap) d += "h.1";
    gap = false;
  }
  $("trend").replaceChildren(svg("path", { d }));
  const bounds = known.map((p) => p.bound_ns / 1e6);
  const text = "Error bound over " + span((end - points[0].gateway_ms) / 1000 + 60) + " (log): " +
    ms(Math.min(...bounds)) + " to " + ms(Math.max(...bounds)) +
    (known.length < points.length ? ", none for " + span((points.length - known.length) * 60) : "");
  $("trend").setAttribute("aria-label", text);
  $("trend-text").textContent = text;
}

function drawInputs(v) {
  table("inputs", ["Input", "State", "Last data", "#Readings/s", "#Accepted", "#Rejected", "#Reconnects", "Note"], (v.inputs || []).map((i) => {
    const r = i.reader || { state: "not read" }, per = rate("input " + i.name);
    const days = r.certificate_ends ? Math.floor((Date.parse(r.certificate_ends) - Date.parse(v.at)) / 86400000) : null;
    const rejected = i.counts.malformed + i.counts.unmatched;
    return [i.name, { t: r.state + (r.catching_up ? ", catching up" : ""), c: r.state === "connected" ? "ok" : "warn" },
      ago(v.at, r.last_data), num(per == null ? "–" : per < 10 ? per.toFixed(1) : Math.round(per)),
      num(i.counts.accepted), num(rejected, rejected ? "warn" : ""), num(r.reconnects ?? "–", r.reconnects ? "warn" : ""),
      { t: plain(r.problem || (days == null ? "" : "certificate: " + days + " days left")), c: "wrap" + (days != null && days < 45 ? " warn" : "") }];
  }), "No input is configured.");
}

function lane(k) {
  return el("span", { class: "lane", role: "img", "aria-label": k.windows.map((w) => w.status + (w.late ? ", late readings" : "")).join("; ") },
    k.windows.map((w) => el("i", {
      class: "w " + w.status + (w.late ? " late" : ""),
      title: new Date(w.start_ms).toISOString().slice(0, 19).replace("T", " ") + ": " + w.status + ", revision " + w.revision +
        ", " + value(w.value) + " of " + w.observed + " readings" + (w.late ? ", " + w.late + " too late" : ""),
    })));
}

function spark(k) {
  const vs = k.windows.map((w) => w.value).filter((x) => typeof x === "number");
  if (vs.length < 2) return "";
  const lo = Math.min(...vs), hi = Math.max(...vs), h = hi - lo || 1;
  const at = vs.map((x, i) => (i / (vs.length - 1) * 100).toFixed(1) + "," + (18 - (x - lo) / h * 16).toFixed(1));
  return svg("svg", { class: "spark", viewBox: "0 0 100 20", preserveAspectRatio: "none", role: "img", "aria-label": "from " + value(lo) + " to " + value(hi) },
    svg("polyline", { points: at.join(" ") }));
}

function drawResults(v) {
  const rows = (v.results || []).map((k) => {
    const told = k.windows.filter((w) => w.revision > 0), w = told[told.length - 1];
    const cover = w && w.expected > 0 ? Math.round(100 * w.observed / w.expected) + " %" : w ? w.observed + " readings" : "";
    return [(k.asset || "–") + " / " + k.sensor, num(w ? value(w.value) : "–"), k.unit, lane(k), spark(k), num(cover),
      num(w ? w.revision : "–"), w ? clock(new Date(w.start_ms).toISOString()) : "", k.function, k.feature];
  });
  if (v.results_unlisted) rows.push([{ t: v.results_unlisted.toLocaleString("en") + " more keys; tidemark explain shows each", c: "muted" }]);
  table("results", ["Asset / sensor", "#Latest", "Unit", "Windows, newest right", "Trend", "#Coverage", "#Revision", "Window", "Function", "Feature"], rows, "No window has a result yet.");
}

function drawFeatures(v) {
  table("features", ["Feature", "#Lag", "Held back by", "#Open", "#Windowed", "#Late"], (v.features || []).map((f) => {
    const lag = f.watermark ? (Date.parse(v.at) - Date.parse(f.watermark)) / 1000 : null;
    return [f.name, num(f.disabled ? "disabled" : lag == null ? "–" : span(lag)),
      { t: f.disabled || (f.held_by || []).join(", ") + ((f.stalled || []).length ? " (stalled: " + f.stalled.join(", ") + ")" : ""), c: "wrap" },
      num(f.open_windows), num(f.windowed), num(f.late, f.late ? "warn" : "")];
  }), "No feature is configured.");
}

function drawDisorder(v) {
  const rows = [];
  for (const d of v.disorder || []) {
    rows.push([d.input, "measured", num(d.disorder ? ms(d.disorder.p99_ms) : "–"), num(d.delay ? ms(d.delay.p99_ms) : "–"), ""]);
  }
  for (const b of v.budgets || []) {
    const f = (v.features || []).find((x) => x.name === b.feature) || { windowed: 0, late: 0 };
    const share = f.windowed + f.late ? 100 * f.late / (f.windowed + f.late) : 0;
    rows.push([b.feature, "budget", num(ms(b.out_of_orderness_ms)), num(ms(b.allowed_lateness_ms)),
      { t: share.toFixed(2) + " % late, " + (b.results ? (100 * b.corrections / b.results).toFixed(1) : "0.0") + " % corrections", c: share > 1 ? "warn" : "" }]);
  }
  table("disorder", ["Input or feature", "", "#p99 disorder, out-of-orderness", "#p99 delay, lateness", "Cost"], rows, "Nothing has come yet.");
}

function drawTags(v) {
  const sums = Object.entries(v.tag_states || {}).map(([s, n]) => n.toLocaleString("en") + " " + s);
  $("tag-sums").textContent = sums.join(" · ");
  const bad = { problem: "err", silent: "err", quarantined: "err", never: "warn", bad: "warn", overdue: "warn", pending: "warn", uncertain: "warn" };
  table("tags", ["Tag", "State", "#Age", "#Value", "Why"], (v.tags || []).map((t) => [
    t.input + ": " + (t.asset || "–") + " / " + t.sensor, { t: t.state, c: bad[t.state] || "ok" },
    num(t.age_ms == null ? "–" : span(t.age_ms / 1000)), num(t.last ? value(t.last.value) + (t.unit ? " " + t.unit : "") : "–"),
    { t: plain(t.why), c: "wrap" }]), "No tag has spoken yet.");
}

function drawSources(v) {
  table("sources", ["Source", "#Clock off by", "Verdict", "Next step"], (v.clock.sources || []).slice(0, 30).map((s) => [
    [s.input, s.device].filter(Boolean).join(" / "),
    num(s.offset_lo_ns != null && s.offset_hi_ns != null ? ms(s.offset_lo_ns / 1e6) + " … " + ms(s.offset_hi_ns / 1e6) : "–"),
    { t: s.verdict, c: s.advice ? "warn" : "ok" }, { t: plain(s.advice || s.policy || ""), c: "wrap" }]), "No source's clock has been measured yet.");
}

function drawHeld(v) {
  const rows = [], oldest = (of) => v.oldest[of] ? "; the oldest came " + ago(v.at, v.oldest[of]) : "";
  for (const i of v.inputs || []) {
    if (i.pending_now) rows.push([i.name, { t: "pending", c: "warn" }, num(i.pending_now), { t: "wait until the gateway's clock can be trusted" + oldest("pending"), c: "wrap" }]);
    for (const [why, n] of Object.entries(i.quarantine || {})) {
      rows.push([i.name, { t: why, c: "warn" }, num(n), { t: plain(v.next_steps[why] || ""), c: "wrap" }]);
    }
    if (i.quarantined_now) rows.push([i.name, "in quarantine now", num(i.quarantined_now), { t: "tidemark quarantine list shows them, release judges them again" + oldest("quarantine"), c: "wrap" }]);
    for (const [why, n] of Object.entries(i.rejects || {})) rows.push([i.name, { t: why, c: "warn" }, num(n), { t: "unreadable; the log has an example", c: "wrap" }]);
  }
  table("held", ["Input", "Reason", "#Readings", "Next step"], rows, "Nothing waits, nothing is in quarantine.");
}

function drawUplinks(v) {
  table("uplinks", ["Uplink", "State", "Last PUBACK", "#Backlog", "To drain", "Note"], (v.uplinks || []).map((u) => {
    const falls = -rate("uplink " + u.name);
    return [u.name, { t: u.state, c: u.state === "online" ? "ok" : "warn" }, ago(v.at, u.last_ack), num(u.backlog),
      u.backlog && falls > 0 ? span(u.backlog / falls) : u.backlog ? "–" : "", { t: u.reason || "", c: "wrap" }];
  }), "No uplink is configured: features stay in the store.");
}

function drawStore(v) {
  const s = v.store, lost = Object.entries(v.lost || {}).filter(([, n]) => n);
  list("store", [
    ["Used", bytes(s.used_bytes) + " of " + bytes(s.quota_bytes) + "; " + bytes(s.free_bytes) + " free on disk"],
    ["Readings kept", s.readings.toLocaleString("en") + (s.oldest_ms ? ", since " + new Date(s.oldest_ms).toISOString().slice(0, 16).replace("T", " ") : "")],
    ["Room left for", v.hours_left == null ? null : v.hours_left > 8760 ? "more than a year" : span(v.hours_left * 3600)],
    ["Lost", lost.length ? lost.map(([k, n]) => n + " " + k).join(", ") : "nothing", lost.length ? "err" : "ok"],
    ["Sums", v.conserved ? "every reading is accounted for" : "do not hold", v.conserved ? "ok" : "err"],
    ["Configuration", v.configuration.file + " " + v.configuration.hash],
    ["Rejected edit", v.configuration.rejected ? v.configuration.rejected.reason : null, "warn"],
    ["Version", v.version + ", generation " + v.generation + ", block " + v.block],
  ]);
}

function draw(v) {
  if (v.error) { away(v.error); return; }
  count(v);
  drawn = true;
  for (const f of [drawVerdict, drawClock, drawInputs, drawResults, drawFeatures, drawDisorder, drawTags, drawSources, drawHeld, drawUplinks, drawStore]) f(v);
}

function away(why) {
  document.querySelector("header").className = "away";
  $("verdict").textContent = "No answer: " + why;
}

const stream = new EventSource("/api/stream");
stream.onmessage = (e) => { if (!document.hidden || !drawn) draw(JSON.parse(e.data)); };
stream.onerror = () => away("the gateway does not answer; what is below was the last");
