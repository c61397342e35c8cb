// Traces and sessions from a report's file or a running collector. Each source has an index, whose traces and sessions are
// linked here, and these functions: open, pageOf, details,
// spokenIn, traceHref, sessionHref, home, missingSpans, beyond, beside, again, asCase, deletion, tickable, isColumn, relative, heading, NAVIGATION, TITLES.

const store = { index: null, metrics: {} };

// Replaces positions in the index by the traces and sessions themselves.
function linked(index) {
  for (const [key, each] of Object.entries(index.metrics)) {
    const known = store.metrics[key];
    store.metrics[key] = { ...each, asked: each.asked || (known !== undefined && known.asked), threshold: each.threshold ?? (known ? known.threshold : null) };
  }
  index.traces.forEach((trace, at) => {
    trace.at_ = at;
    trace.of = trace.session === undefined ? null : index.sessions[trace.session];
    judge(trace, trace.results);
  });
  index.sessions.forEach((session, at) => {
    session.at_ = at;
    session.rows = session.traces.map((number) => index.traces[number]);
    session.members = session.members || session.rows.map((row) => row.id);
    for (const result of session.results) result.session = session.id;
    judge(session, session.results);
  });
  return index;
}

// The worst result of a trace or session: failures first, then by signal.
function judge(unit, results) {
  unit.failed = results.filter((result) => result.success === false);
  const scored = results.filter((result) => result.signal !== undefined);
  const order = (a, b) => (a.success !== false) - (b.success !== false) || a.signal - b.signal;
  unit.worst = scored.sort(order)[0] || null;
  unit.thin = unit.worst !== null && scored.every((result) => result.metric === "trace.response");
  unit.state = unit.failed.length || unit.error !== undefined ? "bad" : results.some(isOpen) ? "quiet" : unit.worst && !unit.thin ? (unit.worst.says ? "quiet" : "good") : "none";
}

function metric(key) {
  return store.metrics[key] || { name: key.slice(key.indexOf(".") + 1), level: key.split(".")[0], question: "", needs: "", models: [] };
}

// The metric's display name, with the level if two levels have this metric.
function metricName(key) {
  const { name, level } = metric(key);
  const twice = Object.entries(store.metrics).some(([other, each]) => other !== key && each.name === name && each.asked);
  const plain = name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");
  return twice && level !== "trace" ? `${plain} (${level})` : plain;
}

// The name of a failed result: its label, else its metric.
function failureName({ metric: key, label }) {
  return humane(["pass", "fail", "", undefined, "problem_found"].includes(label) ? metric(key).name : label);
}

// A session, or a trace without a session, by its entry in the index.
function unitOf(index, [kind, at]) {
  const session = kind === "s" ? index.sessions[at] : null;
  return session ? { session, rows: session.rows, href: sessionHref(session) } : { session: null, rows: [index.traces[at]], href: traceHref(index.traces[at].id) };
}

// Number and kind of the rows of an index: sessions, traces without a session, or both.
function manyUnits(order) {
  const sessions = order.filter(([kind]) => kind === "s").length;
  if (!sessions) return many(order.length, "run");
  return sessions === order.length ? many(sessions, "session") : many(order.length, "session or single run", "sessions and single runs");
}

function unitState(unit) {
  if (unit.rows.some((row) => row.state === "bad") || (unit.session && unit.session.state === "bad")) return "bad";
  if (verdictOn(unit)) return "good"; // a failed one has made it bad
  if (openOn(unit) || (unit.session && unit.session.results.some((result) => result.says))) return "quiet";
  return unit.rows.some((row) => row.state === "good") ? "good" : "none";
}

// The judge's verdict on a session.
function verdictOn({ session }) {
  return session && session.results.find((result) => isVerdict(result.metric) && typeof result.success === "boolean");
}

// The results of a trace, and the verdicts on its session.
function withVerdicts({ results, of }) {
  return [...results, ...(of ? of.results.filter((result) => isVerdict(result.metric)) : [])];
}

// Whether a verdict is undecided: the judge is unsure, or code found a failure in a run that the judge finds correct.
function isOpen({ label }) {
  return label === "unclear" || label === "disputed";
}

function openOn({ session, rows }) {
  return [...(session ? [session] : []), ...rows].flatMap(({ results }) => results).find(isOpen);
}

// The share of decided results that passed, as in the texts of the command line: "80 % of 70 decided, 20 unclear".
function decided({ passed, failed, unclear, disputed }) {
  const all = passed + failed;
  const parts = [`${all ? `${percent(passed / all)} of ` : ""}${number(all)} decided`, unclear && `${number(unclear)} unclear`, disputed && `${number(disputed)} disputed`];
  return parts.filter(Boolean).join(", ");
}

// The counts of `decided` over some results.
function tallied(results) {
  const count = (fits) => results.filter(fits).length;
  return { passed: count((result) => result.success === true), failed: count((result) => result.success === false), unclear: count((result) => result.label === "unclear"), disputed: count((result) => result.label === "disputed") };
}

// The most informative failure of a unit, and its trace. A finding in a trace comes before a score of the session, and a
// failed verdict comes before both.
function worstOf(unit) {
  let found = null;
  const better = (a, b) => !b || (a.success === false) > (b.result.success === false)
    || ((a.success === false) === (b.result.success === false) && a.signal < b.result.signal);
  for (const row of unit.rows) if (row.worst && better(row.worst, found)) found = { result: row.worst, row };
  const verdict = verdictOn(unit);
  if (verdict && verdict.success === false) return { result: verdict, row: null };
  const whole = unit.session && unit.session.worst;
  if (whole && whole.success === false && !(found && found.result.success === false)) return { result: whole, row: null };
  return found || (whole ? { result: whole, row: null } : null);
}

function sum(values) {
  return values.reduce((a, b) => a + b, 0);
}
