// A trace: a strip of scores, and below it the list of steps and the chosen step.

// `wanted`: the step to open, by `spans` (ids), by `metric` (key of the finding's metric), or by `step` (the judge's name,
// such as `call 2` or `turn 1`). Default: the first wrong step.
async function tracePage(trace, wanted = {}) {
  const held = await details(trace), found = held && held.spans ? held : null;
  const session = trace.of;
  const place = session ? session.members.indexOf(trace.id) : -1;
  const full = held ? held.results : [];
  const results = trace.results.map((result, at) => [result, { ...result, ...full[at] }]).sort(([a], [b]) => byUrgency(a, b));
  const named = found ? namedSpans(found, wanted) : [];
  const verdicts = (session ? session.results : []).filter((result) => isVerdict(result.metric));
  const wrong = found && !named.length ? firstWrong(found, results, wanted.metric, verdicts.filter(({ metadata }) => metadata && metadata.blame && metadata.blame.trace_id === trace.id)) : [];
  const shown = found ? panes(trace, found, results, [...named, ...wrong], named.length > 0 || Boolean(wanted.metric)) : null;
  if (shown) {
    current = shown.view;
    onArrival(() => reveal(shown.view));
  }
  const title = trace.in || trace.agent || "trace";
  return [
    el("nav", { class: "crumbs", "aria-label": "Where you are" }, el("a", { href: home() }, "Overview"), " / ",
      session ? el("a", { href: sessionHref(session), class: "of" }, session.id) : "trace without a session", place >= 0 && session.members.length > 1 ? ` / trace ${place + 1} of ${session.members.length}` : "",
      place >= 0 ? neighbours(session, place) : null),
    el("h1", { class: "asked", dir: "auto" }, el("span", {}, title), " ", crashed(trace)),
    el("p", { class: "lead" }, [trace.in ? trace.agent : "", trace.service, `${moment(trace.at)} UTC`, duration(trace.us), many(trace.spans, "span"), many(trace.llm, "model call"),
      many(trace.tools, "tool call"), sum(trace.tokens) && `${number(trace.tokens[0])} + ${number(trace.tokens[1])} tokens`, found && found.models.join(", "),
      trace.user && `user ${trace.user}`, trace.incomplete && "root span missing"].filter(Boolean).join(" · "), " · ", el("span", { class: "id" }, trace.id)),
    el("div", { class: "ways" }, found && asCase("trace", trace.id), deletion({ trace: trace.id, session: session && session.id, user: trace.user }, trace.at), beyond(trace)),
    scoreStrip(results, shown && shown.view, found, verdicts.map((result) => [result, (step) => stepHref(session, result, step)])),
    found && agentGraph([{ id: trace.id, spans: found.spans }], trace.agent),
    shown ? [shown.nodes, footnotes(found, shown.view)] : [el("div", { class: "card" }, excerpts(trace)), el("p", { class: "notice" }, missingSpans(trace))],
  ];
}

// The spans in an address. The outermost span is the whole run, so it names no step.
function namedSpans(found, { spans = [], step }) {
  const [kind, at] = (step || "").split(" ");
  const meant = kind === "call" ? found.calls[at - 1] : kind === "turn" && found.turns[at - 1] ? spanOfTurn(found, at - 1) : undefined;
  return [...(meant ? [meant] : []), ...spans].filter((id) => found.spans.some((row) => row.id === id && (row.up >= 0 || found.spans.length === 1 || id === meant)));
}

// The span with the answer of a turn: the last model call with these words, else the span of the turn.
function spanOfTurn(found, turn) {
  const [, assistant, id] = found.turns[turn];
  const giver = found.spans.findLast((row) => row.kind === "llm" && (row.out || []).some(([, text]) => text === assistant));
  return giver ? giver.id : id;
}

// The first wrong step: the step that the judge names, else the blamed step, else the step of the first finding.
function firstWrong(found, results, metric, ofSession) {
  const blamed = ([, full]) => (full.metadata && full.metadata.blame && full.metadata.blame.span_id) || null;
  const meant = results.find(([result]) => result.metric === metric);
  const judged = results.find(([result]) => result.metric === "trace.correctness" && result.success === false);
  const blame = results.find(([result]) => result.metric === "trace.blame");
  const failed = results.filter(([result]) => result.success === false);
  const inner = (ids) => (ids || []).filter((id) => found.spans.some((row) => row.id === id && row.up >= 0));
  const error = failed.length || found.error !== null ? found.spans.findLast((row) => row.error !== undefined) : undefined;
  const ways = [meant && [blamed(meant)], meant && meant[1].spans, ...ofSession.map((result) => [blamed([null, result])]), judged && [blamed(judged)], blame && blame[1].spans, ...failed.flatMap((each) => [[blamed(each)], each[1].spans])];
  return ways.map(inner).find((ids) => ids.length) || (error ? [error.id] : []);
}

// All scores in a few lines: the verdict, failures with their reasons, and chips that open for the rest.
function scoreStrip(results, view, found, ofSession) {
  const onSpans = view && ((ids) => point(view, ids, !WIDE.matches, true));
  const verdicts = results.filter(([result]) => isVerdict(result.metric));
  const others = results.filter(([result]) => !isVerdict(result.metric) && !isExplaining(result.metric));
  const more = el("div", { class: "opened" }), opening = openingInto(more, onSpans);
  const failed = others.filter(([result]) => result.success === false), fine = others.filter(([result]) => result.success !== false);
  return el("section", { class: "score-strip card", "aria-label": "Scores" }, el("h2", { class: "unseen" }, "Scores"),
    ofSession.map(([result, hrefOf]) => verdictOf(result, result, opening, null, hrefOf)),
    verdicts.map(([result, full]) => verdictOf(result, full, opening, onSpans && ((step) => point(view, namedSpans(found, { step }), !WIDE.matches, true)))),
    failed.map(([result, full]) => findingOf(result, full, opening, onSpans)),
    fine.length ? el("div", { class: "chips all" }, fine.map(([result, full]) => opening(chip(result), result, full, turnNote(result, full, found)))) : null,
    results.length || ofSession.length ? null : el("p", { class: "muted" }, "No metric applies to this trace."), more);
}

// Makes buttons that show a result's details in `more`, and hide them with the next click.
function openingInto(more, onSpans) {
  return (shown, result, full, note) => {
    const button = el("button", { class: "chip-button", type: "button", "aria-expanded": "false", title: "Show details of this score", onclick: () => {
      const open = button.getAttribute("aria-expanded") !== "true";
      for (const each of more.parentElement.querySelectorAll(".chip-button")) each.setAttribute("aria-expanded", "false");
      button.setAttribute("aria-expanded", String(open));
      more.replaceChildren(...(open ? [resultItem(result, full, onSpans)] : []));
    } }, shown, note);
    return button;
  };
}

function turnNote(result, full, found) {
  const turn = isOfTurn(result) && found && found.turns.length > 1 ? found.turns.findIndex(([, , span]) => span === full.span) : -1;
  return turn < 0 ? null : el("span", { class: "muted" }, ` turn ${turn + 1}`);
}

// A failure on a line: name, reason and a link to its step. `opening`: makes a button that shows the details.
function findingOf(result, full, opening, onSpans) {
  const blame = full.metadata && full.metadata.blame && full.metadata.blame.span_id;
  const spans = full.spans && full.spans.length ? full.spans : blame ? [blame] : [];
  return el("div", { class: "finding result fail" },
    el("div", { class: "line-head" }, opening(failedChip(result), result, full), el("span", { class: "reason", dir: "auto" }, full.reason || ""),
      spans.length && onSpans ? el("button", { class: "link show", type: "button", onclick: () => onSpans(spans) }, spans.length === 1 ? "Show the step" : `Show ${number(spans.length)} steps`) : null,
      beside(full)));
}

// A result of another evaluator.
function otherText(other) {
  return `${other.source}: ${[other.name, other.score, other.label].filter((part) => part !== null && part !== "").join(" ")}`;
}

// Notes about how PandaEval read the trace.
function footnotes(found, view) {
  const loose = looseAnswers(view.loose);
  const others = (found.evaluations || []).map(otherText);
  const notes = [...found.notes, others.length ? `other evaluators: ${others.join(", ")}` : "", found.dialects.length ? `read as ${found.dialects.join(", ")}` : ""].filter(Boolean).map((note, at) => (at ? note : note.charAt(0).toUpperCase() + note.slice(1))).join("; ");
  const silent = view.trace.in === undefined && view.trace.out === undefined;
  return el("p", { class: "muted footnotes" }, silent ? ["Message content was not captured. The ", el("a", { href: "#/" }, "overview"), " shows how to capture it, under Not scored. "] : null,
    loose.some((each) => !each.suspect) ? [el("mark", { class: "loose" }, "Marked"), " values have no source in this session, or contradict a source. "] : null,
    loose.some((each) => each.suspect) ? [el("mark", { class: "suspect" }, "Grey"), " values are suspicious, but do not fail the run. "] : null,
    found.more_turns ? `${many(found.more_turns, "more turn")} left out. ` : null, notes);
}

function neighbours(session, place) {
  const link = (at, text, key) => session.members[at] === undefined ? null : el("a", { href: traceHref(session.members[at]), "data-key": key, title: `key ${key}` }, text);
  return el("span", { class: "neighbours" }, link(place - 1, "← earlier", "p"), " ", link(place + 1, "later →", "n"));
}

function isOfTurn(result) {
  return result.metric.startsWith("turn.");
}

function unanswered(trace, found) {
  if (found.ends_in_tool_call) return "none: the trace ends in a tool call";
  return trace.error === undefined ? "not captured" : "none: the run failed";
}

function excerpts(trace) {
  return [trace.in === undefined ? notCaptured("user") : block(trace.in, "user", "user"), trace.out === undefined ? notCaptured("answer") : block(trace.out, "answer", "assistant")];
}
