// One trace: what was asked and answered, what the scores say, and the spans as a waterfall.

// `spans`: ids of those that are pointed to.
async function tracePage(trace, spans = []) {
  const found = await details(trace);
  const session = trace.of;
  const place = session ? session.members.indexOf(trace.id) : -1;
  const full = found ? found.results : trace.full || [];
  const results = trace.results.map((result, at) => [result, { ...result, ...full[at] }]).sort(([a], [b]) => byUrgency(a, b));
  const atTurns = new Set((found ? found.turns : []).map(([, , span]) => span).filter(Boolean));
  const [ofTurns, ofTrace] = [true, false].map((wanted) => results.filter(([result, full]) => wanted === (isOfTurn(result) && atTurns.has(full.span))));
  const fall = found ? waterfall(trace, found, results) : null;
  if (fall && spans.length) onArrival(() => fall.point(spans));
  return [
    el("nav", { class: "crumbs", "aria-label": "Where you are" }, el("a", { href: home() }, "Overview"), " / ",
      session ? el("a", { href: sessionHref(session) }, session.id) : "trace without a session", place >= 0 ? ` / trace ${place + 1} of ${session.members.length}` : "",
      place >= 0 ? neighbours(session, place) : null),
    el("h1", {}, trace.agent || "trace", " ", crashed(trace)),
    el("p", { class: "lead" }, [trace.service, `${moment(trace.at)} UTC`, duration(trace.us), many(trace.spans, "span"), many(trace.llm, "model call"),
      many(trace.tools, "tool call"), sum(trace.tokens) && `${number(trace.tokens[0])} + ${number(trace.tokens[1])} tokens`, found && found.models.join(", "),
      trace.user && `user ${trace.user}`, trace.incomplete && "root span missing"].filter(Boolean).join(" · "),
      el("br", {}), el("span", { class: "id muted" }, trace.id), beyond(trace)),
    el("div", { class: "cards two wide" },
      el("section", { class: "card" }, el("h2", {}, "Asked and answered"), found ? conversation(trace, found, looseAnswers(looseOf(results)), ofTurns, fall && fall.point) : excerpts(trace)),
      el("section", { class: "card" }, el("h2", {}, "Scores"), ofTrace.length
        ? ofTrace.map(([result, full]) => resultOrLine(result, full, fall && fall.point))
        : el("p", { class: "muted" }, ofTurns.length ? "Those of its turns stand beside them." : "No metric applies to this trace."))),
    fall ? fall.nodes : el("p", { class: "notice" }, missingSpans(trace)),
  ];
}

function neighbours(session, place) {
  const link = (at, text, key) => session.members[at] === undefined ? null : el("a", { href: traceHref(session.members[at]), "data-key": key, title: `key ${key}` }, text);
  return el("span", { class: "neighbours" }, link(place - 1, "← earlier", "p"), " ", link(place + 1, "later →", "n"));
}

function isOfTurn(result) {
  return result.metric.startsWith("turn.");
}

// `ofTurns`: the results of turns, which stand at theirs.
function conversation(trace, found, loose, ofTurns, onSpans) {
  const texts = found.texts;
  const turns = found.turns.map(([user, assistant, span]) => [
    user === null ? notCaptured("user") : block(texts[user], "user", "user"),
    assistant === null ? notCaptured("answer", unanswered(trace, found)) : block(texts[assistant] === "" ? "(empty)" : texts[assistant], "answer", "assistant", loose),
    ofTurns.filter(([, full]) => full.span === span).map(([result, full]) => resultOrLine(result, full, onSpans))]);
  return [turns.length ? turns : excerpts(trace), found.more_turns ? el("p", { class: "muted" }, `${many(found.more_turns, "more turn")} left out`) : null,
    loose.length ? el("p", { class: "muted" }, el("mark", { class: "loose" }, "Marked"), ": stands in nothing that the agent had been told or found") : null,
    found.error === null ? null : block(texts[found.error], "error", "error"),
    found.notes.length || found.dialects.length ? el("p", { class: "muted" }, [...found.notes, found.dialects.length ? `read as ${found.dialects.join(", ")}` : ""].filter(Boolean).join("; ")) : null];
}

function unanswered(trace, found) {
  if (found.ends_in_tool_call) return "none: the trace ends in a tool call";
  return trace.error === undefined ? "not captured" : "none: the run failed";
}

function excerpts(trace) {
  return [trace.in === undefined ? notCaptured("user") : block(trace.in, "user", "user"), trace.out === undefined ? notCaptured("answer") : block(trace.out, "answer", "assistant")];
}
