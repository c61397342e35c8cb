// The first page: incidents over time, then sessions, agents, and the reliability of the scores.

let rated = { rates: [], unscored: [], corrected: [] }; // of the window

async function overview(query) {
  const [{ body, rows }, found, matching] = [await listing("sessions", query), await failing(query), await matches("sessions", query)];
  whole = (await ask("/overview")).body;
  rated = await ratesOf(query);
  if (!whole.metrics.length && !body.index.order.length) return [el("h1", {}, "No scores yet"), raised(), beginning()];
  const blind = isBlind(body);
  return [
    el("div", { class: "top" }, el("h1", {}, headline(body, query, matching)), el("span", { class: "muted" }, summary(found, (judged().all || judged().open) && body.traces !== null ? findings(body, query) : "")), windows(query)),
    raised(),
    body.index.unasked && !whole.judge ? caveat(body.index.unasked) : null,
    zoomable(found, query),
    await filters("sessions", query),
    blind ? el("div", { class: "cards" }, unscored(query)) : null,
    incidentList(found, query, FIRST),
    body.index.order.length ? [el("h2", {}, "Sessions ", el("small", {}, "worst first")), rows] : nothing(query),
    el("div", { class: "cards two" },
      el("section", { class: "card flush" }, el("h2", {}, "Agents ", el("a", { href: `#/agents${carried(query)}` }, "all agents")), found.agents.slice(0, 6).map((agent) => agentRow(agent, query))),
      trust(query), blind ? null : unscored(query), judging()),
  ];
}

function summary(found, first) {
  const fresh = found.incidents.filter((each) => each.trend === "begun" && each.triage.back_at === null).length, rising = found.incidents.filter((each) => each.trend === "rising").length;
  return [first, found.total && many(found.total, "incident"), fresh && `${number(fresh)} just begun`, rising && `${number(rising)} rising`].filter(Boolean).join(", ");
}

// Errors of the collector's components. Each error means a missing result, reading or delivery.
function raised() {
  const errors = whole.component_errors;
  return errors.length ? el("div", { class: "notice raised", role: "alert" }, el("b", {}, "Components raised errors, so their results are missing. "),
    errors.map(({ kind, name, count }) => `${kind} ${name} × ${number(count)}`).join(", "), el("span", { class: "muted" }, " since the collector started. The log has the first traceback of each.")) : null;
}

// A full store, and outages of the judge or a sink, shown on every page.
function warned() {
  const { judge_paused: paused, judge_error: error, sinks_down: down, store_full: full } = whole, waiting = questionsWaiting();
  const lines = [...paused.map((name) => [el("b", {}, `The judge ${name} is paused. `), "It gave no valid reply for three traces in a row. One call every 10 minutes tries it again. Choose another judge.model."]),
    error !== null && !paused.length && [el("b", {}, `The judge ${whole.judge || ""} does not answer. `), `${many(waiting, "question")} ${waiting === 1 ? "waits" : "wait"}, and the collector tries again: `, el("span", { dir: "auto" }, error)],
    full && [el("b", {}, "New spans are refused: "), full],
    ...down.map((name) => [el("b", {}, `The exporter ${name} cannot deliver. `), "Results wait in the store, and the collector tries again. The log has the error."])].filter(Boolean);
  const known = document.querySelector(".outage"), made = lines.length ? el("div", { class: "notice raised outage", role: "alert" }, lines.map((line) => el("p", {}, line))) : null;
  if (known && made && known.textContent === made.textContent) return;
  if (known) known.remove();
  if (made) document.getElementById("top").after(made);
}

function questionsWaiting() {
  return (whole.jobs.due || 0) + (whole.jobs.leased || 0);
}

// One line, with the rest on demand, so that a phone also shows the worst rows.
function caveat(text) {
  const end = text.indexOf(". ") + 1 || text.length;
  return el("details", { class: "lead unasked" }, el("summary", {}, text.slice(0, end)), text.slice(end));
}

function unitsOf({ index }) {
  return index.order.map((each) => unitOf(index, each));
}

// Whether no listed row has a score, except scores of how runs ended.
function isBlind(body) {
  return body.index.order.length > 0 && unitsOf(body).every((unit) => unitState(unit) === "none");
}

// The rates of the window and of all its runs.
async function ratesOf(query) {
  const asked = asking(query);
  for (const name of ["metric", "label", "incident", "outcome", "success", "failed", "text"]) asked.delete(name);
  return (await ask(`/rates?${asked}`)).body;
}

// The share of judged conversations (else runs) that were handled correctly. `agent`: only of this agent.
function judged(agent = null) {
  const held = rated.rates.filter((rate) => rate.metric === "correctness" && rate.scored && rate.agent === agent);
  const level = held.some((rate) => rate.level === "session") ? "session" : "trace";
  const { passed, failed, unclear, disputed } = held.find((rate) => rate.level === level) || { passed: 0, failed: 0, unclear: 0, disputed: 0 };
  return { level, passed, failed, unclear, disputed, all: passed + failed, open: unclear + disputed, what: level === "session" ? "session" : "run" };
}

// The pass rate of all judged runs, corrected by labels. Needs enough labels, a single agent and no other filter.
function corrected(agent, query) {
  if (["service", "environment", "user", "attribute", "min_seconds", "min_usd"].some((name) => query.get(name))) return null;
  const { level } = judged(agent), held = rated.corrected.filter((each) => each.metric === `${level}.correctness` && (!agent || each.agent === agent));
  if (held.length !== 1) return null;
  const [{ value, low, high, labels, judge: own }] = held;
  return [`${percent(value)} from ${number(labels)} labels`, ` (${percent(low)} to ${percent(high)})`, own === null ? "" : `; judge ${percent(own)}`];
}

// Wilson's 95 % interval of a share.
function between(right, all) {
  const square = 1.96 ** 2, middle = right + square / 2, half = Math.sqrt(square * ((right * (all - right)) / all + square / 4));
  return `${percent(Math.max(0, (middle - half) / (all + square)))} to ${percent(Math.min(1, (middle + half) / (all + square)))}`;
}

// The number of runs with findings. A run without findings is not shown as good.
function findings(body, query) {
  const runs = many(body.traces, ["agent", "service", "environment", "user", "metric"].some((each) => query.get(each)) ? "matching run" : "run");
  return body.failed ? `${number(body.failed)} of ${runs} ${body.failed === 1 ? "has" : "have"} findings` : `no findings in ${runs}`;
}

function headline(body, query, matching) {
  const name = windowName(query);
  const when = name && ` in the ${name}`;
  const filtered = CHOSEN.some((each) => query.get(each));
  const what = filtered ? "matching run" : "run";
  if (!body.index.order.length) return `No ${what}s${when}`;
  if (isBlind(body)) return `${blankHeadline(unitsOf(body))}${when}`;
  if (matching) return `${matching}${when}`;
  if (query.get("failed") && body.traces !== null) return `${many(body.traces, "matching run")}${when}`;
  const counts = judged(), { passed, all, what: unit } = counts, fixed = corrected(query.get("agent"), query);
  const judge = counts.open ? withOpen(counts, query) : all ? percent(passed / all) : null;
  const basis = ` ${all ? `(${between(passed, all)}) ` : ""}${counts.open ? `${unit}s` : `of ${many(all, unit)}`} judged${when}`;
  if (judge && fixed) return ["Handled correctly: ", fixed, el("small", {}, ` of all judged ${unit}s. Judge alone: `, judge, basis)];
  if (counts.open) return ["Handled correctly: ", judge, el("small", {}, basis)];
  if (judge) return [judge, " handled correctly", el("small", {}, basis)];
  return [`Not judged${whole.judge ? " yet" : ""}: `, body.failed ? el("em", {}, number(body.failed)) : "", findings(body, query).replace(/^\d[\d,]*/, "")];
}

// The share of judged runs that were handled correctly, corrected by labels if possible.
function verdictsOf(query, agent) {
  const counts = judged(agent), fixed = corrected(agent, query), to = new URLSearchParams(query);
  if (agent) to.set("agent", agent);
  const judge = counts.open ? withOpen(counts, to) : counts.all ? decided(counts) : el("span", { class: "muted" }, "not judged");
  return fixed ? [fixed, el("small", {}, " "), judge] : judge;
}

// The share of decided runs, and links to unclear and disputed runs.
function withOpen(counts, query) {
  return [decided({ ...counts, unclear: 0, disputed: 0 }), ", ", openLinks(counts, `${counts.level}.correctness`, query)];
}

function openLinks(counts, key, query) {
  return OPEN.filter((label) => counts[label]).map((label, at) => [at ? ", " : "",
    el("a", { href: resultsOf(key, label, query), title: `Show ${label} verdicts` }, `${number(counts[label])} ${label}`)]);
}

// The list of the view's runs that have this verdict of a metric.
function resultsOf(key, verdict, query) {
  const to = new URLSearchParams([...query].filter(([name]) => VIEW.includes(name) && !["metric", "failed", "label", "incident", "q", "state"].includes(name)));
  for (const [name, value] of [["metric", key], ["failed", verdict]]) to.set(name, value);
  return `#/${metric(key).level === "session" ? "sessions" : "traces"}?${to}`;
}

function nothing(query) {
  const wider = new URLSearchParams(query);
  for (const name of ["since", "until"]) wider.delete(name);
  wider.set("window", "all");
  return el("p", { class: "notice" }, "No rows match. ", el("a", { href: `#/?${wider}` }, "Show all stored runs"), " · ", el("a", { href: "#/" }, "Clear filters"));
}

function unscored(query) {
  return el("section", { class: "card" }, el("h2", {}, "Not scored ", el("small", {}, windowName(query))),
    rated.unscored.length ? rated.unscored.slice(0, 6).map((entry) => el("div", { class: "why" },
      el("div", {}, el("b", {}, humane(entry.why)), ` × ${number(entry.count)} `,
        el("span", { class: "muted" }, Object.entries(entry.metrics).map(([key, count]) => `${metricName(key)} ${number(count)}`).join(", "))),
      entry.cure ? el("div", { class: "cure" }, withSettings(entry.cure)) : null)) : el("p", { class: "muted" }, questionsWaiting() ? `Nothing else is missing: ${many(questionsWaiting(), "question")} for the judge ${questionsWaiting() === 1 ? "waits" : "wait"}.` : "Every applicable metric has a score."));
}

function judging() {
  const { jobs, judge: model, spent_usd: spent, daily_usd: most } = whole;
  const waiting = questionsWaiting();
  const ended = Object.entries(jobs).filter(([state, count]) => count && !["due", "leased"].includes(state)).map(([state, count]) => `${number(count)} ${state}`);
  return el("section", { class: "card" }, el("h2", {}, "Judge"), model ? [
    el("p", { class: "big" }, number(waiting), el("span", { class: "muted" }, ` ${waiting === 1 ? "question waits" : "questions wait"} for ${model}`)),
    ended.length ? el("p", { class: "muted" }, ended.join(" · ")) : null,
    el("p", {}, el("b", {}, dollars(spent)), most === null ? " spent today (UTC); no limit is set (judge.daily_usd)" : ` of ${dollars(most)} spent today (UTC)`)]
    : el("p", { class: "muted" }, "No model is configured (judge.model): task success is not judged."));
}
