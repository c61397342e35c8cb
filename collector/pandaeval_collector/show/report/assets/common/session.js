// One session: what its scores say, the risk of each trace, and the traces in order.

function sessionPage(session) {
  const rows = session.rows;
  const agents = [...new Set(rows.map((row) => row.agent).filter(Boolean))];
  const list = el("div", { class: "rows" });
  const more = paged(rows, 50, (row, at) => traceRow(row, at + 1), list);
  const last = rows.at(-1);
  const title = rows.map((row) => row.in).find(Boolean);
  const opened = el("div", { class: "opened" });
  const verdicts = session.results.filter((result) => isVerdict(result.metric));
  return [
    el("nav", { class: "crumbs", "aria-label": "Where you are" }, el("a", { href: home() }, "Overview"), " / session"),
    el("h1", { class: "asked", dir: "auto" }, el("span", {}, title || session.id)),
    el("p", { class: "lead" }, [agents.join(", "), many(sizeOf({ session, rows }), "trace"), sizeOf({ session, rows }) > rows.length && `the worst ${number(rows.length)} are shown`, rows.length && `${moment(rows[0].at)} UTC`,
      rows.length && `over ${duration(1000 * (last.at - rows[0].at) + last.us)}`].filter(Boolean).join(" · "), title ? [" · ", el("span", { class: "id" }, session.id)] : null),
    el("div", { class: "ways" }, again(session), asCase("trace", session.id)),
    verdicts.length ? el("section", { class: "score-strip card", "aria-label": "Verdict" }, verdicts.map((result) => verdictOf(result, result, openingInto(opened, null), null, (step) => stepHref(session, result, step))), opened) : null,
    el("h2", {}, "Scores"),
    el("div", { class: "cards two" }, session.results.filter((result) => !isVerdict(result.metric)).map(verdicts.length ? besideVerdict : (result) => result).map((result) => el("section", { class: "card" }, resultItem(result, result))), risks(session), othersOf(rows)),
    el("h2", {}, "Traces in order"),
    list, more,
  ];
}

// Results of other evaluators on the traces of a session.
function othersOf(rows) {
  const lines = rows.flatMap((row, at) => (row.others || []).map((other) => el("li", {}, otherText(other), " ", el("a", { href: traceHref(row.id) }, `trace ${at + 1}`))));
  return lines.length ? el("section", { class: "card" }, el("h2", {}, "Other evaluators"), el("ul", {}, lines)) : null;
}

// What rules say of a session that a judge has read, too: they do not know of the verdict.
function besideVerdict(result) {
  const cut = (text) => text && text.replace("; task success: not judged", "");
  return { ...result, spelled: cut(result.spelled), reason: cut(result.reason) };
}

// Where a step of a conversation is that a judge names: the first wrong one is known by its span; another by counting the
// calls, or the turns where each trace is one, which holds where all traces are at hand: else the page of the session does it.
function stepHref(session, result, step) {
  const held = result.metadata || {}, blame = held.blame || {};
  if (blame.step === step && traceHref(blame.trace_id)) return `${traceHref(blame.trace_id)}?span=${blame.span_id}`;
  const [kind, at] = step.split(" ");
  const found = (id, place) => traceHref(id) && `${traceHref(id)}?step=${kind}%20${place}`;
  if (kind === "turn") return held.turns === session.members.length ? found(session.members[at - 1], 1) : null;
  if (!session.rows.length) return `${sessionHref(session)}?step=${kind}%20${at}`; // its page knows how many calls each trace has
  if (sizeOf({ session, rows: session.rows }) !== session.rows.length) return null;
  let left = Number(at);
  for (const row of session.rows) {
    if (left <= row.tools) return found(row.id, left);
    left -= row.tools;
  }
  return null;
}

// Risk by trace, as agent_reliability adds it up.
function risks(session) {
  const found = session.results.find((result) => result.metric === "session.agent_reliability" && result.risks);
  if (!found || session.rows.length < 2) return null;
  const flagged = new Set((found.metadata && found.metadata.flagged_traces) || []);
  const bars = session.rows.slice(0, 300).map((row, at) => {
    const parts = found.risks[row.id];
    if (!parts) return el("a", { class: "risk none", href: traceHref(row.id), title: `trace ${at + 1}: no signal` }, el("i", {}), String(at + 1));
    const risk = parts.step_risk || 0;
    const causes = Object.entries(parts).filter(([name]) => name !== "step_risk").map(([name, held]) => `${name.replace("_risk", "")} ${score(held)}`);
    const title = `trace ${at + 1}: risk ${score(risk)} (${causes.join(", ") || "no signal"})`;
    return el("a", { class: `risk ${flagged.has(row.id) || risk > 0.5 ? "bad" : ""}`, href: traceHref(row.id), title, "aria-label": title },
      el("i", { "--risk": `${Math.max(2, Math.min(100, risk * 100))}%` }), String(at + 1));
  });
  return el("section", { class: "card" }, el("h2", {}, "Risk by trace"),
    el("div", { class: `risks ${bars.length > 16 ? "many" : ""}` }, bars));
}
