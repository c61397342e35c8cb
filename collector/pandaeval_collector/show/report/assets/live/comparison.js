// Two filters side by side, such as two versions, models, weeks or environments: each number leads to its runs.

const SPANS = [["", "all stored runs"], ["24h", "last 24 hours"], ["24h.before", "24 hours before"], ["7d", "last 7 days"], ["7d.before", "7 days before"]];
const SPAN_MS = { "24h": 864e5, "7d": 6048e5 };
const KINDS = { version: "service.version", model: "gen_ai.request.model" };
const CLEAN = "runs without findings";
const LISTABLE = ["agent", "service", "environment", "user", "attribute", "min_seconds", "min_usd", "since", "until"]; // by these a list can be filtered, too
const MEASURED = { us: ["Latency (median)", duration], us95: ["Latency (95th percentile)", duration], tokens: ["Tokens (median)", compact], usd: ["Cost (median)", dollars] };

// The filters of a side for the API. A time span ends now, to the minute.
function groupOf(query, side) {
  const group = new URLSearchParams();
  for (const [name, value] of query) if (name.startsWith(`${side}.`) && name !== `${side}.window`) group.append(name.slice(2), value);
  const [span, before] = (query.get(`${side}.window`) || "").split(".");
  if (SPAN_MS[span]) {
    const now = Math.floor(Date.now() / 6e4) * 6e4, end = now - (before ? SPAN_MS[span] : 0);
    group.set("since", new Date(end - SPAN_MS[span]).toISOString());
    if (before) group.set("until", new Date(end).toISOString());
  }
  return group;
}

// The list view with the runs of a group; null if the list lacks a filter.
function viewOf(group) {
  if ([...group.keys()].some((name) => !LISTABLE.includes(name))) return null;
  const view = new URLSearchParams({ window: "all" });
  for (const [name, value] of group) view.append(name, name === "since" || name === "until" ? String(Date.parse(value)) : value);
  return view;
}

function valuesOf(key) {
  return ask(`/attributes?key=${encodeURIComponent(key)}`).then(({ body }) => body.values);
}

// A link that compares the runs of a view with earlier runs.
function comparisonHref(query) {
  const to = new URLSearchParams(), span = { "7d": "7d", all: "7d" }[query.get("window")] || "24h";
  for (const side of ["a", "b"]) {
    for (const [name, value] of query) if (LISTABLE.slice(0, -2).includes(name)) to.append(`${side}.${name}`, value);
    to.set(`${side}.window`, side === "a" ? `${span}.before` : span);
  }
  return `#/comparison?${to}`;
}

async function comparisonPage(query) {
  watched = null;
  said("");
  whole = (await ask("/overview")).body;
  for (const { key, ...known } of (await ask("/metrics")).body) store.metrics[key] = { scored_by: {}, models: [], ...known, ...store.metrics[key] };
  const values = Object.fromEntries(await Promise.all(Object.entries(KINDS).map(async ([kind, key]) => [kind, await valuesOf(key)])));
  if (![...query.keys()].some((name) => /^[ab]\./.test(name))) begun(query, values.version);
  const sides = { a: groupOf(query, "a"), b: groupOf(query, "b") }, asked = new URLSearchParams();
  for (const [side, group] of Object.entries(sides)) for (const [name, value] of group) asked.append(`${side}.${name}`, value);
  const head = [el("div", { class: "top" }, el("h1", {}, "Compare")), el("div", { class: "cards two" }, ["a", "b"].map((side) => groupForm(side, query, values)))];
  try {
    const { body } = await ask(`/compare?${asked}`);
    return [head, comparedRates(body, sides), comparedIncidents(body, sides), comparedMeasures(body)];
  } catch (error) {
    if (!error.expected) throw error;
    return [head, el("p", { class: "notice", role: "alert" }, error.message)];
  }
}

// Default: the newest version and the version before it, else this week and the week before.
function begun(query, versions) {
  if (versions.length > 1) for (const [at, side] of [[1, "a"], [0, "b"]]) query.set(`${side}.attribute`, `${KINDS.version}=${versions[at]}`);
  else for (const [side, span] of [["a", "7d.before"], ["b", "7d"]]) query.set(`${side}.window`, span);
}

function groupForm(side, query, values) {
  const again = (id) => {
    history.replaceState(null, "", `#/comparison?${query}`);
    show(true).then(() => document.getElementById(id)?.focus());
  };
  const field = (label, name, options, held, take) => {
    const id = `${side}-${name}`, known = options.some(([key]) => key === held) ? options : [...options, [held, held]];
    return known.length < 3 && !held ? null : el("label", {}, `${label} `, el("select", { id, onchange: ({ target }) => { take(target.value); again(id); } }, known.map(([key, text]) => el("option", { value: key, selected: key === held }, text))));
  };
  const any = (names) => [["", "any"], ...names.map((name) => [name, name])];
  const one = (label, name, options) => field(label, name, options, query.get(`${side}.${name}`) || "", (value) => { if (value) query.set(`${side}.${name}`, value); else query.delete(`${side}.${name}`); });
  const pairs = query.getAll(`${side}.attribute`);
  const kind = (label, name) => {
    const of = `${KINDS[name]}=`, held = pairs.find((pair) => pair.startsWith(of)) || "";
    return field(label, name, any(values[name]), held.slice(of.length), (value) => {
      query.delete(`${side}.attribute`);
      for (const pair of [...pairs.filter((each) => !each.startsWith(of)), value && of + value]) if (pair) query.append(`${side}.attribute`, pair);
    });
  };
  const rest = [...query].filter(([name, value]) => name.startsWith(`${side}.`) && !/\.(window|agent|service|environment)$/.test(name) && !Object.values(KINDS).some((key) => value.startsWith(`${key}=`)));
  return el("section", { class: "card" }, el("h2", {}, el("span", { class: "letter" }, side), " runs"), el("form", { class: "filters", onsubmit: (event) => event.preventDefault() },
    one("Time", "window", SPANS), kind("Version", "version"), kind("Model", "model"), one("Environment", "environment", any(whole.environments)), one("Agent", "agent", any(whole.agents)), one("Service", "service", any(whole.services))),
  rest.length ? el("p", { class: "muted" }, "And ", rest.map(([name, value]) => `${name.slice(2)} ${value}`).join(", ")) : null);
}

// A number, with a link to its rows if a list can show them.
function counting(count, text, group, of, chosen) {
  const view = viewOf(group);
  if (!count || !view) return text;
  for (const [name, value] of Object.entries(chosen)) view.set(name, value);
  return el("a", { href: `#/${of}?${view}` }, text);
}

function compareTable(head, rows) {
  return el("div", { class: "scroll card", tabindex: "0" }, el("table", { class: "compared" }, el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, rows)));
}

function pText(p) {
  return p === null ? "–" : p < 0.001 ? "< 0.001" : p.toFixed(3);
}

function signed(share) {
  return `${share < 0 ? "−" : "+"}${Math.round(Math.abs(share) * 100)}`;
}

// The colour of a significant change. Fewer findings are no verdict, so they are not green.
function changeClass({ metric: key, p, difference }) {
  if (p === null || p >= 0.05) return "muted";
  if (difference < 0) return "bad";
  return key === CLEAN ? "" : "good";
}

function comparedRates({ a, b, rates }, sides) {
  const side = ({ metric: key }, name, share) => {
    const of = metric(key).level === "session" ? "sessions" : "traces", group = sides[name];
    const chosen = (failed) => (key === CLEAN ? { failed } : { metric: key, failed });
    const [good, bad] = key === CLEAN ? ["without findings", "with findings"] : ["passed", "failed"];
    const isExact = metric(key).level !== "turn"; // a run counts by its worst turn, and is listed by any
    return el("td", {}, share.share === null ? el("span", { class: "muted" }, "–") : el("b", {}, percent(share.share)), share.share === null ? null : el("small", {}, ` (${percent(share.low)} to ${percent(share.high)})`),
      el("small", { class: "counts" }, isExact ? counting(share.passed, `${number(share.passed)} ${good}`, group, of, chosen("0")) : `${number(share.passed)} ${good}`, ", ", counting(share.failed, `${number(share.failed)} ${bad}`, group, of, chosen("1")), share.undecided ? `, ${number(share.undecided)} undecided` : null));
  };
  const row = (rate) => el("tr", {}, el("th", { scope: "row" }, rate.metric === CLEAN ? "Runs without findings" : metricName(rate.metric)), side(rate, "a", rate.a), side(rate, "b", rate.b),
    el("td", { class: changeClass(rate) }, rate.difference === null ? "–" : [`${signed(rate.difference)} points`, el("small", {}, ` (${signed(rate.low)} to ${signed(rate.high)})`)]), el("td", {}, pText(rate.p)));
  const runs = (name, group) => counting(group.runs, many(group.runs, "run"), sides[name], "traces", {});
  return [el("h2", {}, "Passed, or without findings ", el("small", {}, "a: ", runs("a", a), ", b: ", runs("b", b))), compareTable(["metric", "a", "b", "b − a", "p"], rates.map(row)),
    el("p", { class: "muted" }, "Each share is of the results that passed or failed. The row Runs without findings counts runs, and is no verdict. Brackets contain 95 % intervals. p is the probability that chance alone causes this difference or a larger difference (Fisher's exact test). Of 20 metrics, expect one with p below 0.05 by chance.")];
}

function comparedIncidents({ incidents }, sides) {
  const changed = incidents.filter((each) => each.trend !== "same");
  const count = (row, name) => {
    const which = row.grouped ? { incident: row.ids.join(",") } : { metric: row.metric, label: row.label };
    return el("td", {}, counting(row[name], number(row[name]), sides[name], ofSession(row) ? "sessions" : "traces", { ...which, failed: "1" }));
  };
  const row = (each) => el("tr", {}, el("th", { scope: "row" }, el("span", { class: "state" }, each.trend), " ", severityOf(each), " ", el("a", { href: `#/failures?group=${each.id}&window=all` }, failureName(each)), el("small", { class: "reason", dir: "auto" }, each.reason)),
    count(each, "a"), count(each, "b"), el("td", {}, pText(each.p)));
  return [el("h2", {}, "Incidents that changed ", el("small", {}, "number of runs, or of sessions for session metrics; growing and shrinking incidents have p below 0.05")), changed.length ? compareTable(["incident", "a", "b", "p"], changed.map(row)) : el("p", { class: "muted" }, "No incident is new, gone, growing or shrinking. Muted incidents are not compared.")];
}

function comparedMeasures({ measures }) {
  const row = ({ name, a, b }) => el("tr", {}, el("th", { scope: "row" }, MEASURED[name][0]), [a, b].map((value) => el("td", {}, value === null ? "–" : MEASURED[name][1](value))), el("td", {}, a && b !== null ? `${signed(b / a - 1)} %` : "–"));
  return measures.length ? [el("h2", {}, "Latency and cost ", el("small", {}, "by run, of the newest 5,000 runs of each group")), compareTable(["by run", "a", "b", "change"], measures.map(row))] : null;
}
