// Incidents: what failed within the window by cause, how grave, since when and how often, and one example.

const FIRST = 8;

async function failing(query, measured) {
  const asked = asking(query);
  asked.delete("failed");
  asked.set("limit", "200");
  if (measured) asked.set("measured", "true");
  return (await ask(`/page/incidents?${asked}`)).body;
}

function incidentRow(incident, query) {
  const agents = incident.agents.filter(Boolean);
  const to = new URLSearchParams(query);
  to.set("group", groupOf(incident));
  return el("a", { class: `incident ${incident.severity}`, href: `#/failures?${to}` },
    el("span", { class: "severity" }, el("i", { "aria-hidden": "true" }), incident.severity),
    el("span", { class: "what" }, el("b", {}, failureName(incident)), " ", incident.state && el("span", { class: "state" }, incident.state), el("span", { class: "reason", dir: "auto" }, incident.reason)),
    el("span", { class: "agents muted" }, agents[0] || "", agents.length > 1 && ` +${agents.length - 1}`),
    spark(incident.spark, "runs over time"),
    el("span", { class: "times" }, el("b", {}, number(incident.runs)), el("small", {}, incident.runs === 1 ? "run" : "runs")),
    el("span", { class: "when" }, when(incident.last_at), el("small", {}, "since ", when(incident.first_at))));
}

// What an incident is called in an address.
function groupOf(incident) {
  return incident.id || `${incident.metric}/${incident.label}`;
}

function incidentList(found, query, most) {
  if (!found.total) return null;
  const more = found.total - Math.min(most, found.incidents.length);
  return [el("h2", {}, "Incidents ", el("small", {}, "gravest, newest and rising first")),
    el("section", { class: "card flush incidents" }, found.incidents.slice(0, most).map((each) => incidentRow(each, query))),
    more > 0 ? el("p", {}, el("a", { href: `#/failures${carried(query)}` }, `All ${number(found.total)} incidents`)) : null];
}

// The page of all incidents of the window, or of the one that the address names.
async function failuresPage(query) {
  watched = null;
  said("");
  const wanted = query.get("group");
  if (wanted) return incidentPage(wanted, query);
  const found = await failing(query);
  const rows = el("section", { class: "card flush incidents" });
  const more = paged(found.incidents, 3 * STEP, (each) => incidentRow(each, query), rows);
  return [el("div", { class: "top" }, el("h1", {}, "Failures"), el("span", { class: "muted", role: "status" }, summary(found) || "nothing failed here"), windows(query)), zoomable(found, query), filters("failures", query), found.total ? rows : null, more];
}

// The list of an incident's traces in an address.
function tracesOf(incident, query) {
  const view = new URLSearchParams([...query].filter(([name]) => VIEW.includes(name)));
  for (const [name, value] of [["metric", incident.metric], ["failed", "1"], ["order", "newest"]]) view.set(name, value);
  return view;
}

async function incidentPage(id, query) {
  const found = await failing(query);
  const incident = found.incidents.find((each) => groupOf(each) === id || each.groups.includes(id));
  const examples = await examplesOf(incident ? incident.groups : [id]);
  const known = await tracesWith(incident, query);
  const crumbs = el("nav", { class: "crumbs", "aria-label": "Where you are" }, el("a", { href: "#/failures" }, "Failures"), " / incident");
  if (!incident && !examples.length) return [crumbs, el("h1", {}, "This incident is not kept any more"), el("p", { class: "notice" }, el("a", { href: "#/failures?window=all" }, "All that is kept"))];
  const rows = el("section", { class: "card flush" });
  const more = paged(alike(examples, known), 3 * STEP, (held) => exampleRow(held, known), rows);
  return [crumbs, el("div", { class: "top" }, el("h1", {}, incident ? failureName(incident) : "Incident"), incident && el("span", { class: "muted" }, metricName(incident.metric), " ", el("code", {}, incident.metric)), windows(query)),
    incident ? el("section", { class: `card about ${incident.severity}` }, el("p", { dir: "auto" }, incident.reason), el("p", { class: "muted" }, el("span", { class: `severity ${incident.severity}` }, el("i", { "aria-hidden": "true" }), incident.severity),
      ` ${incident.state ? `${incident.state}, ` : ""}${many(incident.runs, "run")} of ${incident.agents.filter(Boolean).join(", ") || "an agent without a name"}, last `, when(incident.last_at), ", first ", when(incident.first_at)), spark(incident.spark, "runs over time")) : el("p", { class: "muted" }, "Nothing of it in this window."),
    el("h2", {}, "Examples ", el("small", {}, "the newest, equal ones together"), incident && !incident.metric.startsWith("session.") ? el("a", { href: `#/traces?${tracesOf(incident, query)}` }, "all of them") : null), examples.length ? [rows, more] : incident && incident.trace_id && el("a", { href: exampleHref(incident) }, "The newest of them")];
}

// The newest failures of these groups.
async function examplesOf(groups) {
  const { body } = await ask("/failures?limit=1000");
  return body.items.filter(({ id }) => groups.includes(id)).flatMap(({ examples, metric: key }) => examples.map((example) => ({ ...example, metric: key }))).sort((a, b) => b.at - a.at).slice(0, 200);
}

// Traces of the incident by their ids, for their words.
async function tracesWith(incident, query) {
  if (!incident) return new Map();
  const { body } = await ask(pathOf("traces", tracesOf(incident, query)));
  return new Map(linked(body.index).traces.map((trace) => [trace.id, trace]));
}

// Examples with the same reason, question and answer but for numbers as one, with how many they are.
function alike(examples, known) {
  const held = new Map();
  for (const example of examples) {
    const trace = known.get(example.trace_id) || {}, key = JSON.stringify([example.reason, trace.in, trace.out]).replace(/\d+/g, "0");
    if (held.has(key)) held.get(key).count += 1; else held.set(key, { example, count: 1 });
  }
  return [...held.values()];
}

function exampleRow({ example, count }, known) {
  const trace = known.get(example.trace_id);
  return el("a", { class: "example", href: exampleHref(example) }, el("span", { class: "says" }, trace && trace.in ? el("b", { class: "q", dir: "auto" }, trace.in) : null, el("span", { class: trace && trace.in ? "muted" : "", dir: "auto" }, example.reason)),
    el("span", { class: "muted" }, count > 1 ? el("b", { class: "same" }, `×${number(count)} `) : null, example.turn === null ? (trace && trace.in ? "" : example.session_id || "") : `turn ${example.turn + 1}`), el("span", { class: "when" }, when(example.at)));
}

// A trace, opened at the step of its finding, or the session where the failure is that of a session.
function exampleHref(example) {
  if (example.trace_id) return `#/trace/${example.trace_id}?finding=${encodeURIComponent(example.metric)}`;
  return `#/session/${encodeURIComponent(example.session_id)}`;
}
