// Rows of lists: sessions and traces, and the columns that people choose.

// Columns of both lists by name, and whether they are shown by default.
const COLUMNS = {
  sessions: { agent: ["Agent", true], id: ["Session id", true], says: ["Problem", true], traces: ["Runs", true], verdict: ["Verdict", true], took: ["Duration", true], tokens: ["Tokens", true], cost: ["Cost", true], when: ["When", true] },
  traces: { agent: ["Agent", true], when: ["When", true], took: ["Duration", true], tools: ["Tool calls", true], tokens: ["Tokens", true], cost: ["Cost", true], scores: ["Scores", true], service: ["Service", false], user: ["User", false], llm: ["Model calls", false], id: ["Trace id", false] },
};
const WIDTHS = { head: "minmax(0, 4fr)", says: "minmax(0, 6fr)", traces: "96px", verdict: "minmax(0, 190px)", taken: "96px", when: "80px" };

// A session with missing traces shows their number, and the state of the worst traces.
function sizeOf({ session, rows }) {
  return session && session.count !== undefined ? session.count : rows.length;
}

function failingOf({ session, rows }) {
  return session && session.failing !== undefined ? session.failing : rows.filter((row) => row.state === "bad").length;
}

// If the judge's verdict is failed or undecided, a trace without a finding is grey, because it is not known to be good.
function statesOf(unit) {
  const { session, rows } = unit, states = session && session.states ? session.states : rows.map((row) => row.state), verdict = verdictOn(unit);
  return (verdict ? !verdict.success : openOn(unit)) ? states.map((state) => (state === "bad" || state < 0.5 ? state : "none")) : states;
}

// The answered runs of a batch; else the trace is its only run.
function runsOf(trace) {
  return trace.runs || [trace];
}

// Question and answer on a line; `isBrief`: only the answer.
function exchange(trace, isBrief) {
  if (trace.out === undefined && (isBrief || trace.in === undefined)) return null;
  const quote = (text) => (text === undefined ? "…" : `“${text}”`);
  return el("span", { class: "muted exchange" }, runsOf(trace).map((run, at) => [at ? " · " : "", isBrief && !at ? "" : el("bdi", {}, quote(run.in)), " → ", el("bdi", {}, quote(run.out))]));
}

// The session score that the row shows in words.
function inWords(unit) {
  return unit.session.results.find((result) => result.says);
}

// Whether a unit without failures was checked only at the ends of its runs.
function isThin(unit) {
  return unit.rows.some((row) => row.thin) && unitState(unit) === "none";
}

// The headline if no row has a verdict, a finding or a check of its content.
function blankHeadline(units) {
  return units.some(isThin) ? "Not judged: only the ends of the runs were checked" : "Nothing could be scored";
}

// The text for a unit without failures.
function calm(unit, lowest) {
  if (isThin(unit)) return "only the ending was checked";
  const judged = verdictOn(unit), open = openOn(unit), said = unit.session && inWords(unit);
  if (judged) return judged.reason || "handled correctly";
  if (open) return `${humane(open.label)}: ${open.reason}`;
  return said ? `${isSoFar(said) ? "So far: " : ""}${said.spelled}` : `no findings (lowest: ${metricName(lowest.metric)})`;
}

// The reasons of a unit without a score.
function unscoredOf(unit) {
  const held = [...unit.rows, ...(unit.session ? [unit.session] : [])].flatMap((each) => each.results);
  const whys = [...new Set(held.map((result) => result.why).filter(Boolean))].map((why) => why.replaceAll("_", " "));
  return whys.length ? `not scored: ${whys.join(", ")}` : "nothing to score";
}

// A list row for a session, or for a trace without a session.
function unitRow(unit) {
  const worst = worstOf(unit);
  const state = unitState(unit);
  const first = unit.rows[0] || {};
  const broken = unit.rows.find((row) => row.error !== undefined);
  const agents = [...new Set(unit.rows.map((row) => row.agent).filter(Boolean))];
  const told = worst && worst.row && worst.result.success === false && !(broken && broken.out === undefined);
  const said = broken && !told ? broken.error
    : state === "bad" && worst ? [isSoFar(worst.result) ? "so far: " : "", worst.result.reason || ""]
      : worst ? el("span", { class: "muted" }, calm(unit, worst.result)) : el("span", { class: "muted" }, openOn(unit) ? calm(unit) : unscoredOf(unit));
  const asked = broken && !told ? broken : worst && worst.row;
  const verdict = broken && !told ? crashed(broken) : state === "good" && verdictOn(unit) ? el("span", { class: "chip pass" }, el("span", { class: "mark", "aria-hidden": "true" }, "✓"), "handled correctly") : state === "quiet" ? chip(openOn(unit) || inWords(unit), false) : isThin(unit) ? el("span", { class: "chip unscored" }, "hardly checked") : worst ? (state === "bad" ? failedChip(worst.result) : chip(worst.result, false)) : el("span", { class: "chip unscored" }, "no score");
  const title = (unit.session && unit.session.asked) || (unit.session && unit.session.count === undefined ? first : asked || first).in; // a report has all traces of a session
  const { us, tokens, usd, unpriced, at } = takenBy(unit);
  const has = (name) => isColumn("sessions", name);
  const cells = Object.keys(WIDTHS).filter((name) => name === "head" || (name === "taken" ? has("took") || has("tokens") || has("cost") : has(name)));
  const made = {
    head: () => el("span", { class: "head" },
      el("span", { class: "title", dir: "auto" }, title || (unit.session ? unit.session.id : first.id)),
      el("span", { class: "muted facts" }, [has("agent") && agents.slice(0, 3).join(", "), has("id") && unit.session && title && el("span", { class: "id" }, unit.session.id)].filter(Boolean).map((fact, place) => [place ? " · " : "", fact]))),
    says: () => el("span", { class: "says" }, el("span", { class: "said", dir: "auto" }, said), asked ? exchange(asked, asked.in === title) : null),
    traces: () => el("span", { class: "traces" }, strip(statesOf(unit), sizeOf(unit), failingOf(unit)), el("span", { class: "muted" }, many(sizeOf(unit), "run"))),
    verdict: () => el("span", { class: "verdict" }, verdict),
    taken: () => el("span", { class: "taken" }, has("took") && el("span", {}, us ? duration(us) : "–"), el("small", {}, [has("tokens") && tokens && `${compact(tokens)} tokens`, has("cost") && costOf(usd, unpriced)].filter(Boolean).join(" · "))),
    when: () => el("span", { class: "when" }, at ? when(at) : ""),
  };
  return tickable(el("a", { class: `row unit ${state}`, href: unit.href, "--columns": cells.map((name) => WIDTHS[name]).join(" ") }, cells.map((name) => made[name]())), (asked || first).id);
}

// Total duration and cost of a unit's runs, and the start of the last run.
function takenBy({ session, rows }) {
  if (session && session.us !== undefined) return { us: session.us, tokens: session.tokens, usd: session.usd, unpriced: session.unpriced, at: session.last };
  const costs = rows.map((row) => row.usd).filter((usd) => usd !== undefined);
  return { us: sum(rows.map((row) => row.us || 0)), tokens: sum(rows.map((row) => sum(row.tokens || []))), usd: costs.length ? sum(costs) : null, unpriced: rows.filter((row) => row.unpriced).length, at: Math.max(0, ...rows.map((row) => row.at)) };
}

function choice(label, name, options, query, change) {
  const held = query.get(name) || options[0][0];
  return el("label", {}, `${label} `, el("select", { onchange: change(name) },
    options.map(([key, text]) => el("option", { value: key, selected: key === held }, text))));
}

function later(run) {
  let waiting;
  return (event) => { clearTimeout(waiting); waiting = setTimeout(() => run(event), 150); };
}

// `isBare`: without question and answer, which are shown below the row.
function traceRow(trace, position, isBare) {
  const tokens = sum(trace.tokens), has = (name) => isColumn("traces", name);
  const facts = { agent: trace.agent, service: trace.service, user: trace.user && `user ${trace.user}`, when: when(trace.at), took: duration(trace.us), llm: trace.llm && many(trace.llm, "model call"), tools: trace.tools && many(trace.tools, "tool call"),
    tokens: tokens && `${number(tokens)} tokens`, cost: costOf(trace.usd, trace.unpriced), id: el("span", { class: "id" }, trace.id) };
  return tickable(el("a", { class: `row trace ${trace.state} ${isBare ? "bare" : ""} ${position === undefined ? "" : "numbered"}`, href: traceHref(trace.id) },
    position !== undefined && el("span", { class: "position" }, String(position)),
    !isBare && el("span", { class: "said" }, runsOf(trace).map((run) => [
      el("span", { class: "q", dir: "auto" }, run.in === undefined ? el("i", {}, "input not captured") : run.in || el("i", {}, "empty input")),
      el("span", { class: "a", dir: "auto" }, run.out === undefined ? el("i", {}, "no answer captured") : run.out || el("i", {}, "empty answer"))])),
    el("span", { class: "facts muted" }, Object.entries(facts).filter(([name, fact]) => fact && has(name)).map(([, fact], at) => [at ? " · " : "", fact])),
    has("scores") && el("span", { class: "scores" }, crashed(trace), chips(isBare ? trace.results.filter((result) => result.success !== false) : withVerdicts(trace)))), trace.id);
}
