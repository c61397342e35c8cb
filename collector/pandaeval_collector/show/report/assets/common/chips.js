// Scores for people: a mark, a number and a name, never only a colour.

const MARK = { fail: "✗", pass: "✓", said: "·", suspect: "?", unclear: "?", disputed: "!", assumed: "≈", unscored: "∅" };

function standing(result) {
  if (result.outcome !== "scored") return result.outcome;
  if (result.success === false) return "fail";
  if (result.label === "suspect" || isOpen(result)) return result.label; // no pass and no failure
  return result.says || result.success === undefined ? "said" : "pass"; // what few signals say is no praise; what neither passes nor fails says nothing of how good a run is
}

function value(result) {
  if (result.outcome === "unscored") return `not scored: ${result.why.replaceAll("_", " ")}`;
  if (result.outcome === "assumed") return "assumed";
  if (standing(result) === "suspect") return "suspected, not proven"; // the number would read as a verdict
  if (!agrees(result)) return result.says || (result.success ? "pass" : "fail");
  return result.says ? (result.success === false ? `${score(result.score)} ${result.says}` : result.says) : score(result.score);
}

// Whether the number agrees with the verdict: not a high number for a failure, and not 0.00 for a pass.
function agrees(result) {
  return result.success === false ? result.score < 0.5 : !result.success || result.score >= 0.005;
}

// Marks the preliminary score of an open session.
function isSoFar(result) {
  return result.final === false;
}

function chip(result, named) {
  const state = standing(result);
  const label = result.label && state !== "suspect" && !result.says && !["pass", "fail", "assumed"].includes(result.label) ? ` ${result.label.replaceAll("_", " ")}` : "";
  const open = isSoFar(result) ? " so far" : "";
  const word = result.outcome === "scored" ? result.word.replaceAll("_", " ") : state;
  const text = `${metricName(result.metric)}: ${value(result)}${open} (${word})`;
  return el("span", { class: `chip ${state}`, title: result.reason ? `${text}: ${result.reason}` : text },
    el("span", { class: "mark", "aria-hidden": "true" }, MARK[state]),
    named !== false && el("span", { class: "name" }, metricName(result.metric)),
    el("span", { class: "value" }, value(result) + label + open));
}

// The failures in a row of a list, by name.
function failedChip(result) {
  return el("span", { class: "chip fail", title: `${metricName(result.metric)} (${result.metric})${result.reason ? `: ${result.reason}` : ""}` },
    el("span", { class: "mark", "aria-hidden": "true" }, "✗"), el("span", { class: "name" }, failureName(result)), el("span", { class: "value" }, (agrees(result) && !isVerdict(result.metric) ? score(result.score) : "") + (isSoFar(result) ? " so far" : "")));
}

// Most urgent first.
function byUrgency(a, b) {
  const order = { fail: 0, disputed: 1, unscored: 1, unclear: 2, suspect: 2, said: 2, pass: 2, assumed: 3 };
  return order[standing(a)] - order[standing(b)];
}

function chips(results) {
  const sorted = results.filter((result) => !isExplaining(result.metric)).sort(byUrgency);
  const fine = sorted.filter((result) => ["pass", "assumed"].includes(standing(result)));
  if (fine.length <= 4 && fine.length === sorted.length) return el("span", { class: "chips" }, sorted.map((result) => chip(result)));
  return el("span", { class: "chips" }, sorted.filter((result) => !fine.includes(result)).map((result) => chip(result)),
    together(fine, "pass", "passed"), together(fine, "assumed", "assumed"));
}

// A chip for several results with the same state.
function together(results, state, what) {
  const held = results.filter((result) => standing(result) === state);
  if (!held.length) return null;
  return el("span", { class: `chip ${state}`, title: held.map((result) => `${metricName(result.metric)} ${value(result)}`).join(", ") },
    el("span", { class: "mark", "aria-hidden": "true" }, MARK[state]), `${number(held.length)} ${what}`);
}

function crashed(trace) {
  return trace.error !== undefined && el("span", { class: "chip fail", title: trace.error },
    el("span", { class: "mark", "aria-hidden": "true" }, "✗"), humane("run failed"));
}

// The traces of a session as a row of squares, in order. `states`: of the first or the worst traces; `size`: number of traces.
function strip(states, size, bad) {
  const most = 48;
  const squares = states.slice(0, most).map((state) => el("i", { class: `square ${typeof state === "number" ? `heat-${heat(state)}` : state}` }));
  return el("span", { class: `strip ${squares.length > 16 ? "many" : ""}`, role: "img", "aria-label": `${many(size, "trace")}, ${number(bad)} with a failure` },
    squares, size > squares.length && el("span", { class: "muted" }, `+${number(size - squares.length)}`));
}
