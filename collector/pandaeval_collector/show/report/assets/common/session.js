// A session: its scores, the risk of each trace, and the traces in order.

async function sessionPage(session) {
  const rows = session.rows;
  const agents = [...new Set(rows.map((row) => row.agent).filter(Boolean))];
  const last = rows.at(-1);
  const title = rows.map((row) => row.in).find(Boolean);
  const { nodes, graph } = await conversation(session, notesOf(session));
  return [
    el("nav", { class: "crumbs", "aria-label": "Where you are" }, el("a", { href: home() }, "Overview"), " / session"),
    el("h1", { class: "asked", dir: "auto" }, el("span", {}, title || session.id)),
    el("p", { class: "lead" }, [agents.join(", "), many(sizeOf({ session, rows }), "trace"), sizeOf({ session, rows }) > rows.length && `scores of the worst ${number(rows.length)} are shown`, rows.length && `${moment(rows[0].at)} UTC`,
      rows.length && `over ${duration(1000 * (last.at - rows[0].at) + last.us)}`].filter(Boolean).join(" · "), title ? [" · ", el("span", { class: "id" }, session.id)] : null),
    el("div", { class: "ways" }, again(session), asCase("trace", session.id), rows.length && deletion({ session: session.id, user: rows[0].user }, rows[0].at)),
    sessionScores(session),
    el("div", { class: "cards two" }, risks(session), othersOf(rows)),
    graph, el("h2", {}, "Conversation"), nodes,
  ];
}

// The verdict, then other failures with their reasons. All other results are chips that open.
function sessionScores(session) {
  const verdicts = session.results.filter((result) => isVerdict(result.metric)), reasons = new Set(verdicts.map(({ reason }) => reason));
  const others = session.results.filter((result) => !isVerdict(result.metric)).map(verdicts.length ? besideVerdict : (result) => result);
  const opened = el("div", { class: "opened" }), opening = openingInto(opened, null);
  const own = (result) => (reasons.has(result.reason) ? { ...result, reason: "for the same reason" } : result.spelled ? { ...result, reason: result.spelled } : result);
  const isLine = (result) => result.success === false || (result.spelled && !verdicts.length);
  const line = (result) => el("div", { class: `finding result ${standing(result)}` }, el("div", { class: "line-head" }, opening(result.success === false ? failedChip(result) : chip(result), result, result), el("span", { class: "reason", dir: "auto" }, own(result).reason || ""), beside(result)));
  const fine = others.filter((result) => !isLine(result));
  return session.results.length || session.rows.some((row) => row.failed.length) ? el("section", { class: "score-strip card", "aria-label": "Scores" }, el("h2", { class: "unseen" }, "Scores"),
    verdicts.map((result) => verdictOf(result, result, opening, null, (step) => stepHref(session, result, step))),
    others.filter(isLine).map(line), foundIn(session.rows, session.members),
    fine.length ? el("div", { class: "chips all" }, fine.map((result) => opening(chip(result), result, result))) : null, opened) : null;
}

// Findings of the verdict by trace id: requests not done, false statements, broken rules, the first wrong step.
function notesOf(session) {
  const notes = new Map();
  for (const result of session.results.filter(({ metric: key }) => isVerdict(key))) {
    const held = result.metadata || {}, list = (name) => (Array.isArray(held[name]) ? held[name] : []);
    const note = (step, name, text) => {
      const place = step && stepPlace(session, result, step);
      if (place) notes.set(place.id, [...(notes.get(place.id) || []), el("p", { class: "finding" }, el("span", { class: "chip fail" }, el("span", { class: "mark", "aria-hidden": "true" }, "✗"), el("span", { class: "name" }, name)), " ", el("span", { dir: "auto" }, text))]);
    };
    for (const each of list("things")) if ((BECAME[each.became] || [])[1] === "fail") note(each.shown_by, `Request: ${each.became}`, each.thing);
    for (const each of list("broken_rules")) note(each.step, "Broken rule", each.rule);
    for (const each of list("misstatements")) if (each.grave) note(each.step, "False statement", each.statement);
    if (result.success === false) note(held.first_wrong_step, "First wrong step", "found by the judge");
  }
  return notes;
}

// Results of other evaluators on the traces of a session.
function othersOf(rows) {
  const lines = rows.flatMap((row, at) => (row.others || []).map((other) => el("li", {}, otherText(other), " ", el("a", { href: traceHref(row.id) }, `trace ${at + 1}`))));
  return lines.length ? el("section", { class: "card" }, el("h2", {}, "Other evaluators"), el("ul", {}, lines)) : null;
}

// The result of rules for a session that a judge has also read. Rules do not know the verdict.
function besideVerdict(result) {
  const cut = (text) => text && text.replace("; task success: not judged", "");
  return { ...result, spelled: cut(result.spelled), reason: cut(result.reason) };
}

// Finds a step that the judge names. The span of the first wrong step is known. Other steps are found by counting calls, or
// turns if each trace is a turn. Counting needs all traces.
function stepPlace(session, result, step) {
  const held = result.metadata || {}, blame = held.blame || {};
  if (blame.step === step && traceHref(blame.trace_id)) return { id: blame.trace_id, at: `span=${blame.span_id}` };
  const [kind, at] = step.split(" ");
  if (kind === "turn") return held.turns === session.members.length && session.members[at - 1] ? { id: session.members[at - 1], at: "step=turn%201" } : null;
  if (sizeOf({ session, rows: session.rows }) !== session.rows.length) return null;
  let left = Number(at);
  for (const row of session.rows) {
    if (left <= row.tools) return { id: row.id, at: `step=${kind}%20${left}` };
    left -= row.tools;
  }
  return null;
}

function stepHref(session, result, step) {
  if (step.startsWith("call") && !session.rows.length) return `${sessionHref(session)}?step=${step.replace(" ", "%20")}`; // its page knows how many calls each trace has
  const place = stepPlace(session, result, step);
  return place && traceHref(place.id) && `${traceHref(place.id)}?${place.at}`;
}

// Risk by trace, from agent_reliability.
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
