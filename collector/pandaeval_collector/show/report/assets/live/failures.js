// Incidents of the window: cause, severity, start and frequency. The page of an incident shows its runs and its triage.

const FIRST = 8;
const STATES = ["open", "new", "known", "resolved", "muted", "all"];

// A page of incidents, most urgent first.
async function failing(query, more = {}) {
  const asked = asking(query);
  asked.delete("failed");
  for (const [name, value] of Object.entries({ limit: 500, state: query.get("state") || "open", ...more })) asked.set(name, value);
  return (await ask(`/incidents?${asked}`)).body;
}

async function everyFailing(query) {
  const found = { ...await failing(query) };
  while (found.next !== null) {
    const { incidents, next } = await failing(query, { cursor: found.next });
    Object.assign(found, { incidents: [...found.incidents, ...incidents], next });
  }
  return found;
}

function severityOf({ severity }) {
  return el("span", { class: `severity ${severity}` }, el("i", { "aria-hidden": "true" }), severity);
}

// State and trend of an incident; empty for a new incident without a trend.
function tagsOf({ triage, trend }) {
  const back = triage.back_at === null ? "" : `came back ${ago(triage.back_at)}`;
  return [trend !== "begun" ? trend : back ? "" : "just begun", triage.state === "new" ? back : triage.state].filter(Boolean).map((text) => el("span", { class: "state" }, text));
}

function nameOf(incident) {
  return [failureName(incident), ...new Set(incident.also.map(([key, label]) => failureName({ metric: key, label })))].join(" + ");
}

function incidentRow(incident, query) {
  const agents = incident.agents.filter(Boolean);
  const to = new URLSearchParams(query);
  to.set("group", incident.id);
  const row = el("a", { class: `incident ${incident.severity}`, href: `#/failures?${to}` }, severityOf(incident),
    el("span", { class: "what" }, el("b", {}, nameOf(incident)), " ", tagsOf(incident), el("span", { class: "reason", dir: "auto" }, incident.triage.note ? el("i", {}, `${incident.triage.note} · `) : "", incident.reason)),
    el("span", { class: "agents muted" }, agents[0] || "", agents.length > 1 && ` +${agents.length - 1}`),
    spark(incident.spark, "runs over time"),
    el("span", { class: "times", title: shareOf(incident) && `${shareOf(incident)} of the runs of its agents` }, el("b", {}, number(incident.runs)), el("small", {}, whatOf(incident) + (incident.runs === 1 ? "" : "s"))),
    el("span", { class: "when" }, when(incident.last_at), el("small", {}, "since ", when(incident.first_at))));
  return incident.dismissed ? el("div", {}, row, el("p", { class: "beneath" }, dismissedOf(incident, query))) : row;
}

function incidentList(found, query, most) {
  const settled = ["resolved", "muted"].filter((state) => found.states[state]);
  if (!found.total && !settled.length) return null;
  const more = found.total - Math.min(most, found.incidents.length), all = carried(query);
  return [el("h2", {}, "Incidents ", el("small", {}, "sorted by severity, then new and rising")),
    found.total ? el("section", { class: "card flush incidents" }, found.incidents.slice(0, most).map((each) => incidentRow(each, query))) : el("p", { class: "muted" }, "All incidents are resolved or muted."),
    more > 0 || settled.length ? el("p", { class: "muted" }, more > 0 && el("a", { href: `#/failures${all}` }, `All ${number(found.total)} incidents`),
      settled.map((state, at) => [more > 0 || at ? " · " : "", el("a", { href: `#/failures${all}${all ? "&" : "?"}state=${state}` }, `${number(found.states[state])} ${state}`)])) : null];
}

// The page of all incidents of the window, or of the incident in the address.
async function failuresPage(query) {
  watched = null;
  said("");
  if (query.get("group")) return incidentPage(query.get("group"), query);
  const found = await everyFailing(query), held = query.get("state") || "open";
  const rows = el("section", { class: "card flush incidents" });
  const more = paged(found.incidents, 3 * STEP, (each) => incidentRow(each, query), rows);
  const counts = { ...found.states, open: found.states.new + found.states.known, all: sum(Object.values(found.states)) };
  const to = (state) => { const view = new URLSearchParams(query); view.set("state", state); return `#/failures?${view}`; };
  const states = el("nav", { class: "pills states", "aria-label": "State" }, STATES.map((state) => el("a", { class: "pill", href: to(state), "aria-current": state === held ? "true" : null }, `${humane(state)} ${number(counts[state])}`)));
  return [el("div", { class: "top" }, el("h1", {}, TITLES.failures), el("span", { class: "muted", role: "status" }, summary(found) || "no incidents"), windows(query)), zoomable(found, query), await filters("failures", query), states, found.total ? rows : el("p", { class: "notice" }, "No incident is listed here."), more];
}

// The address of a list of an incident's traces. `more`: further filters.
function tracesOf(incident, query, more = {}) {
  const view = new URLSearchParams([...query].filter(([name]) => VIEW.includes(name) && name !== "state"));
  const which = incident.grouped ? { incident: incident.ids.join(",") } : { metric: incident.metric };
  for (const [name, value] of Object.entries({ ...which, failed: "1", order: "newest", ...more })) view.set(name, value);
  return `#/${ofSession(incident) ? "sessions" : "traces"}?${view}`;
}

// A link to the dismissed runs of an incident, if there are any.
function dismissedOf(incident, query) {
  if (!incident.dismissed) return null;
  const view = new URLSearchParams(tracesOf(incident, query, { label: "dismissed" }).split("?")[1]);
  view.delete("failed");
  return el("a", { class: "state", href: `#/traces?${view}` }, `${number(incident.dismissed)} dismissed`);
}

function ofSession({ metric: key }) {
  return key.startsWith("session.");
}

function whatOf(incident) {
  return ofSession(incident) ? "session" : "run";
}

// The share of the runs of the incident's agents; empty for sessions, whose total is unknown.
function shareOf(incident) {
  return ofSession(incident) ? "" : percent(incident.runs / incident.among);
}

async function incidentPage(id, query) {
  const crumbs = el("nav", { class: "crumbs", "aria-label": "Where you are" }, el("a", { href: `#/failures${carried(query)}` }, TITLES.failures), " / incident");
  const path = `/incidents/${encodeURIComponent(id)}`, asked = asking(query);
  let found, elsewhere = null, view = query;
  try {
    found = (await ask(`${path}?${asked}`)).body;
  } catch (error) {
    if (error.status !== 404) throw error;
    view = new URLSearchParams({ window: "all" });
    elsewhere = el("p", { class: "notice" }, "No run of this incident matches the window and the filters. All stored runs are shown.");
    try {
      found = (await ask(path)).body;
    } catch (missing) {
      const isDismissed = / dismissed/.test(missing.message);
      if (missing.status !== 404) throw missing;
      return [crumbs, el("h1", {}, isDismissed ? "This incident is dismissed" : "This incident cannot be shown"), el("p", {}, `${missing.message}. `, isDismissed && el("a", { href: `#/traces?window=all&incident=${encodeURIComponent(id)}&label=dismissed` }, "Dismissed runs")), el("p", { class: "notice" }, el("a", { href: "#/failures?window=all" }, "All stored incidents"))];
    }
  }
  const rows = el("section", { class: "card flush" });
  const more = paged(alike(found), STEP, (held) => exampleRow(held, found), rows);
  const parts = ["agent", "version", "model"].map((kind) => partsOf(found, kind, view)).filter(Boolean);
  return [crumbs, el("div", { class: "top" }, el("h1", {}, nameOf(found)), el("span", { class: "muted" }, metricName(found.metric), " ", el("code", {}, found.metric)), windows(query)), elsewhere,
    el("section", { class: "card about" }, el("p", { dir: "auto" }, found.reason), el("p", { class: "muted" }, severityOf(found), ` ${many(found.runs, whatOf(found))}${shareOf(found) && ` (${shareOf(found)})`} of ${found.agents.filter(Boolean).join(", ") || "an agent without a name"}, last `, when(found.last_at), ", first ", when(found.first_at), " ", tagsOf(found).filter((tag) => tag.textContent !== found.triage.state), dismissedOf(found, view),
      found.trace_id && away({ trace_id: found.trace_id, session_id: found.session_id || "", agent: found.agents[0] || "", service: "", start_ms: String(found.first_at), end_ms: String(found.last_at) })), triageOf(found), historyOf(found), found.trace_id && asCase("failure", found.id)),
    zoomable({ ...found, runs: found.all, incident: true }, query),
    parts.length ? el("div", { class: "cards three" }, parts) : null,
    el("h2", {}, "Examples ", el("small", {}, `${found.runs > found.examples.length ? `newest ${number(found.examples.length)} of ${number(found.runs)}` : "newest first"}, equal runs grouped`), found.metric ? el("a", { href: tracesOf(found, view) }, `all ${whatOf(found)}s`) : null), rows, more];
}

// The triage form: a click on a state saves it with the note.
function triageOf(incident) {
  const { triage } = incident;
  const isBack = triage.back_at !== null; // the name and the note are those of the resolution
  const person = (each) => each.by && `by ${each.by}`;
  const told = (each) => each.back_at === null ? [person(each), each.at !== null && ago(each.at)].filter(Boolean).join(", ")
    : `${["resolved", person(each)].filter(Boolean).join(" ")} at ${moment(each.at)}; came back at ${moment(each.back_at)} UTC`;
  if (!can("POST /incidents/state")) return el("p", {}, isBack ? null : el("b", {}, humane(triage.state)), ` ${told(triage)} `, triage.note);
  const note = el("input", { type: "text", id: "note", value: isBack ? "" : triage.note, maxlength: 2000, placeholder: "reason, start time, ticket" });
  const by = el("input", { type: "text", id: "by", value: (!isBack && triage.by) || kept("by", ""), maxlength: 200, placeholder: "your name" });
  const status = el("span", { class: "muted", role: "status" }, told(triage));
  const states = el("span", { class: "choices", role: "group", "aria-label": "State" });
  const mark = async (state) => {
    try {
      keep("by", by.value);
      drawn(await tell("/incidents/state", { ids: incident.ids, state, note: note.value, by: by.value }));
    } catch (error) {
      status.textContent = `not saved: ${error.message}`;
    }
  };
  const drawn = (each) => {
    triage.state = each.state;
    status.textContent = told(each);
    states.replaceChildren(...STATES.slice(1, -1).map((state) => el("button", { class: "pill", type: "button", "aria-pressed": String(state === each.state && each.back_at === null), onclick: () => mark(state) }, humane(state))));
  };
  drawn(triage);
  return el("form", { class: "triage", onsubmit: (event) => { event.preventDefault(); mark(triage.state); } }, states, el("label", {}, "Note ", note), el("label", {}, "By ", by), el("button", { class: "link" }, "Save note"), status);
}

// Earlier states and notes.
function historyOf({ history }) {
  return history.length ? el("details", {}, el("summary", {}, `History (${number(history.length)})`), el("ul", { class: "plain" }, history.map((each) =>
    el("li", {}, when(each.at), ` ${humane(each.state)}${each.by ? ` by ${each.by}` : ""}${each.note ? `: ${each.note}` : ""}`)))) : null;
}

// The incident's share of the runs of each agent, version or model.
function partsOf(incident, kind, query) {
  const parts = incident.parts.filter((part) => part.kind === kind);
  const keys = { version: "service.version", model: "gen_ai.request.model" };
  const more = (name) => (kind === "agent" ? { agent: name } : { attribute: `${keys[kind]}=${name}` });
  return parts.length ? el("section", { class: "card" }, el("h2", {}, `By ${kind} `, el("small", {}, "share of runs")), parts.slice(0, 8).map((part) =>
    el("a", { class: "part", href: tracesOf(incident, query, more(part.name)) }, el("span", { class: "name" }, part.name || "(no name)"), spark(part.spark, `runs of ${part.name} over time`),
      el("span", { class: "times" }, failedShare(part.failed, part.runs), el("small", {}, `${number(part.failed)} of ${number(part.runs)}`))))) : null;
}

// The reason shown for an example: that of the incident's result, else how the run ended.
function reasonOf(example, key) {
  const result = example.results.find(({ level, metric: name, success }) => `${level}.${name}` === key && success === false);
  return result ? result.reason : example.error || "";
}

// Groups examples whose reason, question and answer differ only in numbers, with their count.
function alike({ examples, metric: of }) {
  const held = new Map();
  for (const example of examples) {
    const key = JSON.stringify([reasonOf(example, of), example.input, example.output]).replace(/\d+/g, "0");
    if (held.has(key)) held.get(key).count += 1; else held.set(key, { example, count: 1 });
  }
  return [...held.values()];
}

function exampleRow({ example, count }, { metric: key }) {
  return tickable(el("a", { class: "example", href: `#/trace/${example.trace_id}?finding=${encodeURIComponent(key)}` }, el("span", { class: "says" }, example.input === null ? null : el("b", { class: "q", dir: "auto" }, example.input), example.output === null ? null : el("span", { class: "q", dir: "auto" }, `→ ${example.output}`), el("span", { class: "muted", dir: "auto" }, reasonOf(example, key))),
    el("span", { class: "muted" }, count > 1 ? el("b", { class: "same" }, `×${number(count)} `) : null, example.input === null ? example.session_id || "" : ""), el("span", { class: "when" }, when(example.started_at))), example.trace_id,
    beyond({ id: example.trace_id, of: example.session_id === null ? null : { id: example.session_id }, agent: example.agent, service: example.service, at: example.started_at, us: example.duration_us }));
}
