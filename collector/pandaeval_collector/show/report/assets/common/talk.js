// The conversation of a session: messages of users and agents in order, with the findings at their turns.

const PART = 30; // traces that are shown at once

// `notes`: findings of the session's verdict, by trace id.
async function conversation(session, notes) {
  const known = new Map(session.rows.map((row) => [row.id, row])), told = new Map();
  const list = el("div", { class: "rows talks" }), more = el("button", { class: "more", type: "button" });
  const traces = [], graph = el("div", {}), name = (session.rows[0] || {}).agent;
  let next = 0;
  const grow = async () => {
    const part = await spokenIn(session, next);
    traces.push(...part.traces);
    const made = part.traces.map((held, at) => talk(held, known.get(held.id), next + at, notes.get(held.id) || [], told));
    list.append(...made);
    next = part.next;
    graph.replaceChildren(...[agentGraph(traces, name, next === null ? "" : `(first ${many(next, "trace")})`)].filter(Boolean));
    more.hidden = next === null;
    more.textContent = next === null ? "" : `Show ${number(Math.min(PART, session.members.length - next))} more of ${many(session.members.length, "trace")}`;
    return made[0];
  };
  more.addEventListener("click", async () => {
    more.disabled = true;
    try {
      const first = await grow(), link = first && first.querySelector("a");
      if (link) link.focus();
    } catch (error) {
      more.before(el("p", { class: "bad", role: "alert" }, error.message));
    }
    more.disabled = false;
  });
  await grow();
  return { nodes: [list, more], graph };
}

// A trace of the conversation. `row`: its scores, unless there are too many traces. `told`: findings that earlier traces have.
function talk(held, row, at, notes, told) {
  const href = traceHref(held.id), turns = held.turns || [];
  const findings = (row ? row.failed : []).filter((result) => !isExplaining(result.metric)).map((result) => repeatable(result, at, told));
  return el("section", { class: "talk", id: `trace-${held.id}`, "aria-label": `Trace ${at + 1}` },
    row ? traceRow(row, at + 1, true) : el("a", { class: "row trace numbered", href }, el("span", { class: "position" }, String(at + 1)), el("span", { class: "facts muted" }, "among the better traces of a long session")),
    el("div", { class: "turns" }, turns.length ? turns.map((turn, place) => exchanged(held, row, turn, place)) : row ? excerpts(row) : notCaptured("conversation"),
      held.more_turns ? el("p", { class: "muted" }, `${many(held.more_turns, "more turn")} left out.`) : null, notes, findings));
}

function exchanged(held, row, [user, answer, span], place) {
  const text = (position) => (held.texts[position] === "" ? "(empty)" : held.texts[position]);
  return [user === null ? notCaptured("user") : block(text(user), "user", "user"), calledFor(held, span, place),
    answer === null ? notCaptured("answer", unanswered(row || {}, held)) : block(text(answer), "answer", "assistant")];
}

// The tools called in a turn, as links to their steps. If turns share a span, the first turn has the steps.
function calledFor(held, span, place) {
  const shared = held.turns.findIndex(([, , other]) => other === span) !== place;
  const inside = new Set([held.spans.findIndex((row) => row.id === span)]);
  held.spans.forEach((row, at) => { if (inside.has(row.up)) inside.add(at); });
  const calls = shared ? [] : held.spans.filter((row, at) => row.tool && (held.turns.length === 1 || inside.has(at)));
  const runs = [];
  for (const row of calls) {
    const last = runs.at(-1);
    if (last && last.tool === row.tool && !last.bad === (row.error === undefined)) last.times += 1;
    else runs.push({ tool: row.tool, id: row.id, times: 1, bad: row.error !== undefined });
  }
  return runs.length ? el("p", { class: "called muted" }, "called ", runs.slice(0, 30).map((run, at) => [at ? " → " : "", el("a", { class: run.bad ? "bad" : "", href: `${traceHref(held.id)}?span=${run.id}` }, run.bad ? "✗ " : "", run.tool), run.times > 1 ? ` ×${number(run.times)}` : ""]),
    runs.length > 30 ? ` → ${number(runs.length - 30)} more` : null) : null;
}

// A finding with its reason, or without if an earlier trace has the same reason.
function repeatable(result, at, told) {
  const key = [result.metric, result.label, (result.reason || "").replace(/\d+/g, "")].join("\n"), first = told.get(key);
  if (first === undefined) told.set(key, at);
  return el("p", { class: "finding" }, failedChip(result), " ", el("span", { class: first === undefined ? "" : "muted", dir: "auto" }, first === undefined ? result.reason || "" : `as in trace ${first + 1}`));
}

// The failures in the traces of a session, by name, with their number and traces.
function foundIn(rows, members) {
  const kinds = new Map();
  for (const row of rows) for (const result of row.failed) {
    if (isExplaining(result.metric)) continue;
    const key = failureName(result), held = kinds.get(key) || { result, rows: new Set() };
    kinds.set(key, { ...held, rows: held.rows.add(row) });
  }
  const way = (row) => [" ", el("a", { href: traceHref(row.id), title: `Trace ${members.indexOf(row.id) + 1}` }, String(members.indexOf(row.id) + 1))];
  return [...kinds].sort(([, a], [, b]) => b.rows.size - a.rows.size).map(([name, { rows: held }]) => el("p", { class: "found" },
    el("span", { class: "chip fail" }, el("span", { class: "mark", "aria-hidden": "true" }, "✗"), el("span", { class: "name" }, name)), ` in ${many(held.size, "trace")}:`, [...held].slice(0, 24).map(way), held.size > 24 ? ` and ${number(held.size - 24)} more` : null));
}
