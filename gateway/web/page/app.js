// The page draws each view that the gateway sends; it asks for nothing else and
// keeps no more than the ten latest counts, to tell rates.
"use strict";

let counts = [], drawn = "";

function count(v) {
  const now = { ms: v.gateway_ms };
  for (const i of v.inputs) now["input " + i.name] = i.counts.received;
  for (const u of v.uplinks) now["uplink " + u.name] = u.backlog;
  if (counts.length && now.ms < counts[counts.length - 1].ms) counts = []; // another gateway
  counts.push(now);
  if (counts.length > 10) counts.shift();
}

// rate is how fast a count rises, per second of gateway time; null while not known.
function rate(name) {
  const now = counts[counts.length - 1], then = counts[0], dt = (now.ms - then.ms) / 1000;
  return dt > 0 && name in then ? (now[name] - then[name]) / dt : null;
}

// told is whether the verdict says it already.
const told = (v, text) => !!text && v.because.some((f) => f.detail.includes(text));
const untold = (v, text) => told(v, text) ? "" : text;

function drawVerdict(v) {
  const good = v.verdict === "trustworthy", faults = v.because;
  document.querySelector("header").className = good ? "good" : "bad";
  document.title = (good ? "" : "⚠ ") + v.gateway + " – Tidemark";
  setText($("gateway"), v.gateway);
  setText($("verdict"), (good ? "✓ Trustworthy" : "! Degraded: " + faults[0].name + (faults.length > 1 ? " and " + (faults.length - 1) + " more" : "")) +
    ", since " + moment(v.at, v.since));
  setText($("link"), v.at.slice(0, 10) + " " + clock(v.at) + " UTC");
  $("because").hidden = good;
  fill($("faults"), faults.map((f) => el("li", {}, el("strong", {}, f.name), ": ", prose(f.detail),
    el("span", { class: "muted" }, " · since " + moment(v.at, f.since)))));
}

function drawClock(v) {
  const c = v.clock, servers = c.servers, local = c.trust === "local";
  const agree = servers.filter((s) => s.verdict === "truechimer").length;
  const how = ["synchronized", "free_running"].includes(c.state) ? "ok" : local ? "warn" : "err";
  const state = c.state.replace("_", " "), bound = c.bound_ns >= 0 ? "± " + ms(c.bound_ns / 1e6) : "error not known";
  tile("clock", how, bound, local ? "taken unchecked" : state + (servers.length ? ", " + agree + " of " + servers.length + " agree" : ""));
  list("clock", [
    ["State", state + (local ? ", taken as it is (trust: local)" : ""), how],
    ["Error at most", c.bound_ns >= 0 ? bound : "not known"],
    ["True time is", c.has_offset ? ms(c.offset_lo_ns / 1e6) + " to " + ms(c.offset_hi_ns / 1e6) + " from this clock" : null],
    ["Servers agreeing", servers.length ? agree + " of " + servers.length : "none is configured"],
    ["This host", c.host_method === "none" ? null : c.host_method],
    ["Next step", untold(v, c.advice)],
  ]);
  const words = { truechimer: "agrees", falseticker: "outvoted: it lies" };
  table("servers", ["Server", "Verdict", "#Offset", "#Answers"], servers.map((s) => [
    s.address, { t: words[s.verdict] || s.verdict || "no answer yet", c: s.verdict === "truechimer" ? "ok" : "warn" },
    num(s.answers ? ms(s.offset_ns / 1e6) : "–"), num(s.answers), { note: s.error }]), "");
  drawTrend(v.trend);
}

function drawTrend(points) {
  const known = points.filter((p) => p.bound_ns >= 0);
  let text = "No error bound in the last 24 hours.", d = "";
  if (known.length) {
    const logs = known.map((p) => Math.log10(Math.max(p.bound_ns, 1000)));
    const lo = Math.min(...logs), hi = Math.max(...logs, lo + .5), end = points[points.length - 1].gateway_ms;
    const x = (p) => 288 - (end - p.gateway_ms) / 300000, y = (p) => 52 - (Math.log10(Math.max(p.bound_ns, 1000)) - lo) / (hi - lo) * 46;
    let gap = true;
    for (const p of points) {
      if (p.bound_ns < 0) { gap = true; continue; }
      d += (gap ? "M" : "L") + x(p).toFixed(1) + " " + y(p).toFixed(1) + (gap ? "h.1" : "");
      gap = false;
    }
    const bounds = known.map((p) => p.bound_ns / 1e6), min = ms(Math.min(...bounds)), max = ms(Math.max(...bounds));
    const over = Math.min(86400, (end - points[0].gateway_ms) / 1000 + 60);
    text = "Error bound, last 24 hours, now at the right (logarithmic): " + (min === max ? min : min + " to " + max) + " over " + span(over) +
      (known.length < points.length ? "; none for " + span((points.length - known.length) * 60) : "");
  }
  $("trend").toggleAttribute("hidden", !d);
  fill($("trend"), d ? [svg("path", { d })] : []);
  $("trend").setAttribute("aria-label", text);
  setText($("trend-text"), text);
}

// ends says for how long a certificate is good.
function ends(v, at) {
  if (!at) return "–";
  const days = -before(v.at, at) / 86400;
  return { t: days < 0 ? "ended" : days < 2 ? span(days * 86400) + " left" : Math.floor(days) + " days left", c: days < 7 ? "err" : days < 45 ? "warn" : "" };
}

function drawInputs(v) {
  const all = v.inputs, up = all.filter((i) => i.reader?.state === "connected").length;
  const rates = all.map((i) => rate("input " + i.name)), per = (r) => r == null ? "–" : r < 10 ? r.toFixed(1) : Math.round(r).toLocaleString("en");
  tile("inputs", up === all.length ? "ok" : "err", up + " of " + all.length + " connected", per(rates.includes(null) ? null : sum(rates, (r) => r)) + " readings/s");
  table("inputs", ["Input", "State", "Last data", "#Per second", "#Accepted", "#Unreadable", "#Reconnects", "Certificate"], all.map((i, n) => {
    const r = i.reader || { state: "not read" }, unread = i.counts.malformed + i.counts.unmatched, nodes = r.unread || [];
    const remark = nodes.length ? nodes[0].place + ": " + nodes[0].reason + (nodes.length > 1 ? " (and " + (nodes.length - 1) + " more: tidemark tags)" : "") : "";
    return [i.name, { t: r.state + (r.catching_up ? ", catching up" : ""), c: r.state === "connected" ? "ok" : "err" },
      ago(v.at, r.last_data), num(per(rates[n])), num(i.counts.accepted), num(unread, unread ? "warn" : ""),
      num(r.reconnects ?? "–"), ends(v, r.certificate_ends), { note: untold(v, r.problem) || remark }];
  }), "No input is configured.");
}

function lane(k) {
  const kinds = {};
  for (const w of k.windows) kinds[w.status] = (kinds[w.status] || 0) + 1;
  const late = sum(k.windows, (w) => w.late);
  return el("span", { class: "lane", role: "img", "aria-label": Object.entries(kinds).map(([s, n]) => n + " " + s).join(", ") + (late ? "; " + many(late, "late reading") : "") },
    k.windows.map((w) => el("i", {
      class: "w " + w.status + (w.late ? " late" : ""),
      title: new Date(w.start_ms).toISOString().slice(0, 19).replace("T", " ") + ": " + w.status +
        (w.revision ? ", revision " + w.revision + ", " + value(w.value) + " of " + many(w.observed, "reading") : "") + (w.late ? ", " + w.late + " too late" : ""),
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
  const all = v.results, kinds = { waiting: 0, provisional: 0, corrected: 0, closed: 0 };
  let low = null, told = 0;
  const rows = all.map((k) => {
    for (const w of k.windows) kinds[w.status]++;
    const w = k.windows.findLast((w) => w.revision > 0), share = w && w.expected > 0 ? w.observed / w.expected : null;
    if (share != null && (low == null || share < low)) low = share;
    if (w) told++;
    const cover = share != null ? Math.round(100 * share) + " %" : !w ? "–" : w.observed === 0 && w.value != null ? "held" : many(w.observed, "reading");
    return [(k.asset || "–") + " / " + k.sensor, num(w ? measured(w.value, k.unit) : "–", "main"), { t: lane(k), c: "line" }, { t: spark(k), c: "line" }, num(cover, share != null && share < .8 ? "warn" : ""),
      num(w ? w.revision : "–"), w ? clock(new Date(w.start_ms).toISOString()) : "–", k.function.replaceAll("_", " "), k.feature];
  });
  tile("windows", sum(v.features, (f) => f.late) ? "warn" : all.length ? "ok" : "", sum(v.features, (f) => f.open_windows).toLocaleString("en") + " open",
    kinds.waiting + " waiting, " + kinds.provisional + " provisional, " + kinds.corrected + " corrected");
  tile("results", low != null && low < .8 ? "warn" : told ? "ok" : "", many(told, "value"), !told ? "" : low == null ? "no coverage: expect_every is not set" : "coverage at least " + Math.round(100 * low) + " %");
  table("results", ["Asset / sensor", "#Latest", "Windows, newest right", "Trend", "#Coverage", "#Revision", "Window from", "Statistic", "Feature"], rows, "No reading is in a window yet.");
  if (v.results_unlisted) $("results").tBodies[0].append(el("tr", {}, el("td", { class: "muted", colspan: 9 }, many(v.results_unlisted, "more key") + ": tidemark explain shows each")));
}

function drawFeatures(v) {
  const lag = (f) => f.watermark ? before(v.at, f.watermark) : null;
  const held = (f) => f.held_by.join(", ") || f.idle.map((p) => p + " (idle)").join(", ");
  const on = v.features.filter((f) => f.watermark && f.open_windows), worst = on.length ? on.reduce((a, b) => lag(b) > lag(a) ? b : a) : null;
  const off = v.features.some((f) => f.disabled), stalled = v.features.some((f) => f.stalled.length);
  tile("marks", off ? "err" : !worst ? "" : stalled || worst && lag(worst) > 1800 ? "warn" : "ok", worst ? span(lag(worst)) + " behind" : "none yet", worst && held(worst) ? "held by " + held(worst) : "");
  table("features", ["Feature", "#Behind", "Held back by", "#Open", "#Windowed", "#Too late", "#Excluded"], v.features.map((f) => [
    f.name, num(f.disabled ? "disabled" : lag(f) == null ? "–" : span(lag(f)), f.disabled ? "err" : ""),
    { t: held(f) + (f.stalled.length ? "; stalled: " + f.stalled.join(", ") : ""), c: "wrap" },
    num(f.open_windows), num(f.windowed), num(f.late, f.late ? "warn" : ""), num(f.excluded, f.excluded ? "warn" : ""), { note: untold(v, f.disabled) }]), "No feature is configured.");
}

function drawDisorder(v) {
  const budgets = v.budgets, allowed = Math.max(0, ...budgets.map((b) => b.out_of_orderness_ms + b.allowed_lateness_ms));
  table("disorder", ["Measured at input", "#p99 disorder", "#p99 delay"], v.disorder.map((d) => {
    const over = d.disorder && budgets.length && d.disorder.p99_ms > allowed;
    return [d.input, num(d.disorder ? ms(d.disorder.p99_ms) : "–", over ? "warn" : ""), num(d.delay ? ms(d.delay.p99_ms) : "–"),
      { note: over ? "more than any feature allows: `tidemark advise` recommends budgets" : "" }];
  }), "No input is configured.");
  const late = sum(v.features, (f) => f.late), share = late / (late + sum(v.features, (f) => f.windowed) || 1);
  const all = sum(budgets, (b) => b.results), corrected = sum(budgets, (b) => b.corrections) / (all || 1);
  const none = !late && !sum(v.features, (f) => f.windowed);
  tile("disorder", none ? "" : share > .01 ? "warn" : "ok", none ? "none yet" : percent(share) + " late", none ? "" : percent(corrected) + " of results are corrections");
  table("budgets", ["Budget of feature", "#Out of orderness", "#Lateness", "#Too late", "#Corrections"], budgets.map((b) => {
    const f = v.features.find((x) => x.name === b.feature) || { windowed: 0, late: 0 }, share = f.late / (f.windowed + f.late || 1);
    return [b.feature, num(ms(b.out_of_orderness_ms)), num(ms(b.allowed_lateness_ms)), num(percent(share), share > .01 ? "warn" : ""), num(percent(b.corrections / (b.results || 1)))];
  }), "No feature is configured.");
}

const tagHow = { problem: "err", silent: "err", quarantined: "err", good: "ok" };

// tagWhy is what the state does not say by itself.
const tagWhy = (v, t) => ["bad", "never", "pending"].includes(t.state) ? "" : untold(v, t.why.replace(/^[A-Z_]+: /, ""));

function drawTags(v) {
  const states = Object.entries(v.tag_states), total = sum(states, (s) => s[1]), good = v.tag_states.good || 0;
  const order = ["problem", "silent", "quarantined", "never", "bad", "overdue", "pending", "uncertain", "good"];
  states.sort((a, b) => order.indexOf(a[0]) - order.indexOf(b[0]));
  const said = states.map(([s, n]) => n.toLocaleString("en") + " " + s), bad = said.filter((s) => !s.endsWith(" good"));
  tile("tags", states.some(([s]) => tagHow[s] === "err") ? "err" : bad.length ? "warn" : "ok", good.toLocaleString("en") + " of " + total.toLocaleString("en") + " good",
    bad.slice(0, 2).join(", ") + (bad.length > 2 ? " …" : ""));
  setText($("tag-sums"), said.join(" · ") + (total > v.tags.length ? " · tidemark tags lists all" : ""));
  table("tags", ["Asset / sensor", "State", "#Age", "#Value", "Input"], v.tags.map((t) => [
    (t.asset || "–") + " / " + t.sensor, { t: t.state, c: tagHow[t.state] || "warn" }, num(t.age_ms == null ? "–" : span(t.age_ms / 1000)),
    num(t.last ? measured(t.last.value, t.unit) : "–"), t.input, { note: tagWhy(v, t) }]), "No tag is configured, and none has spoken.");
}

const sourceWords = { OK: "right", OFFSET_POSSIBLE: "not proven off", OFFSET_AHEAD: "ahead", OFFSET_BEHIND: "behind", STEP: "was set", TZ_SHAPED: "in another zone", TAI_SHAPED: "on TAI", GPS_SHAPED: "on GPS time" };

function drawSources(v) {
  const all = v.clock.sources, off = all.filter((s) => s.advice), name = (s) => [s.input, s.device].filter(Boolean).join(" / ");
  tile("sources", off.length ? "err" : all.length ? "ok" : "", !all.length ? "none measured" : off.length ? off.length + " of " + all.length + " off" : "all " + all.length + " right",
    off.length ? name(off[0]) + ": " + (sourceWords[off[0].verdict] || off[0].verdict) : "");
  table("sources", ["Source", "Clock", "#Off by, at least", "#At most", "Suggested policy"], all.map((s) => [
    name(s), { t: sourceWords[s.verdict] || s.verdict, c: s.advice ? "err" : "ok" }, num(ms(s.offset_lo_ns / 1e6)), num(ms(s.offset_hi_ns / 1e6)),
    s.advice && s.policy || "–", { note: untold(v, s.advice) }]), "No source's clock has been measured yet.");
}

function drawHeld(v) {
  const rows = [], all = v.inputs, pending = sum(all, (i) => i.pending_now), quarantined = sum(all, (i) => i.quarantined_now), unread = sum(all, (i) => i.counts.malformed + i.counts.unmatched);
  const since = v.oldest.quarantine || v.oldest.pending;
  tile("held", pending || quarantined ? "err" : unread ? "warn" : "ok", pending + quarantined ? (pending + quarantined).toLocaleString("en") + " readings" : "nothing",
    pending + quarantined ? pending + " pending; oldest " + ago(v.at, since) : unread ? unread.toLocaleString("en") + " unreadable" : "no pending, no quarantine");
  const oldest = (of) => v.oldest[of] ? "; the oldest came " + ago(v.at, v.oldest[of]) : "";
  for (const i of all) {
    if (i.pending_now) rows.push([i.name, { t: "pending", c: "warn" }, num(i.pending_now), { note: "wait until the gateway's clock can be trusted" + oldest("pending") }]);
    if (i.quarantined_now) rows.push([i.name, { t: "in quarantine now", c: "warn" }, num(i.quarantined_now), { note: "`tidemark quarantine list` shows them, `release` has them judged again" + oldest("quarantine") }]);
    for (const [why, n] of Object.entries(i.quarantine || {})) rows.push([i.name, why, num(n), { note: untold(v, v.next_steps[i.name]?.[why]) }]);
    for (const [why, n] of Object.entries(i.rejects || {})) rows.push([i.name, { t: why, c: "warn" }, num(n), { note: "unreadable; the log has an example" }]);
  }
  table("held", ["Input", "Reason", "#Readings"], rows, "Nothing waits, nothing is in quarantine, everything could be read.");
}

function drawUplinks(v) {
  const all = v.uplinks, up = all.filter((u) => u.state === "online").length, backlog = sum(all, (u) => u.backlog);
  const oldest = all.map((u) => u.oldest).filter(Boolean).sort()[0];
  tile("uplinks", up === all.length ? "ok" : "err", all.length ? up + " of " + all.length + " online" : "none configured",
    !all.length ? "features stay in the store" : backlog.toLocaleString("en") + " waiting" + (oldest && before(v.at, oldest) > 10 ? ", oldest " + span(before(v.at, oldest)) : ""));
  table("uplinks", ["Uplink", "State", "Last PUBACK", "#Backlog", "Oldest", "To drain", "Certificate"], all.map((u) => {
    const falls = -rate("uplink " + u.name);
    return [u.name, { t: u.state.replaceAll("_", " "), c: u.state === "online" ? "ok" : "err" }, ago(v.at, u.last_ack), num(u.backlog), u.oldest ? span(Math.max(0, before(v.at, u.oldest))) : "–",
      !u.backlog ? "–" : falls > 0 ? span(u.backlog / falls) : u.state === "online" ? "not falling" : "when online", ends(v, u.certificate_ends),
      { note: untold(v, u.reason) || (u.set_aside ? many(u.set_aside, "record") + " set aside: the broker can never take them" : "") }];
  }), "No uplink is configured: features stay in the store.");
}

function drawStore(v) {
  const s = v.store, lost = Object.entries(v.lost).filter(([, n]) => n), disk = v.because.some((f) => f.name.startsWith("disk"));
  const room = v.hours_left == null ? null : v.hours_left > 8760 ? "more than a year" : span(v.hours_left * 3600);
  tile("store", lost.length || !v.conserved || disk ? "err" : "ok", room ? "room for " + room : Math.round(100 * s.used_bytes / s.quota_bytes) + " % used",
    bytes(s.free_bytes) + " free, " + (lost.length ? "LOST " + sum(lost, (l) => l[1]).toLocaleString("en") : v.conserved ? "nothing lost" : "sums do not hold"));
  list("store", [
    ["Used", bytes(s.used_bytes) + " of " + bytes(s.quota_bytes)],
    ["Free on disk", bytes(s.free_bytes), disk ? "err" : ""],
    ["Readings kept", s.readings.toLocaleString("en") + (s.oldest_ms ? ", since " + moment(v.at, new Date(s.oldest_ms).toISOString()) : "")],
    ["Room left for", room || "not known yet"],
    ["Lost", lost.length ? lost.map(([k, n]) => n.toLocaleString("en") + " " + k).join(", ") : "nothing", lost.length ? "err" : "ok"],
    ["Sums", v.conserved ? "every reading is accounted for" : "do not hold: a fault of the gateway, please report it", v.conserved ? "ok" : "err"],
  ]);
  const c = v.configuration, edit = c.rejected;
  tile("config", edit ? "err" : "ok", c.hash, edit ? "an edit was rejected" : "version " + v.version);
  list("config", [
    ["File", c.file], ["Hash", c.hash],
    ["Rejected edit", edit ? (edit.at ? moment(v.at, edit.at) + ": " : "") + edit.reason : "none", edit ? "err" : ""],
    ["Version", v.version], ["Generation", String(v.generation)], ["Journal block", v.block.toLocaleString("en")],
  ]);
}

function draw(v) {
  if (v.error) { away(v.error); return; }
  count(v);
  drawn = v.at;
  for (const f of [drawVerdict, drawClock, drawInputs, drawResults, drawFeatures, drawDisorder, drawTags, drawSources, drawHeld, drawUplinks, drawStore]) f(v);
}

function away(why) {
  document.querySelector("header").className = "away";
  setText($("verdict"), "✕ No answer: " + why + (drawn ? "; what is below was so at " + clock(drawn) + " UTC" : ""));
}

const stream = new EventSource("/api/stream");
stream.onmessage = (e) => { if (!document.hidden || !drawn) draw(JSON.parse(e.data)); };
stream.onerror = () => away("the gateway is stopped, or out of reach");
