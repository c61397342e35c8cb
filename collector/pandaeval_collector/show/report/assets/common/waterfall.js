// The spans of a trace against time: nested, with what the scores say on the spans that they speak of, and the later
// rounds of a loop folded into one row.

const FEW = 3; // so many spans that a score speaks of are opened at once

function waterfall(trace, found, results) {
  const view = { trace, found, rows: found.spans, marks: marksOf(found, results), loose: looseOf(results), folded: new Set(), loops: new Set(), opened: new Set(), pointed: new Set() };
  const total = Math.max(1, ...view.rows.map((row) => row.at + row.us));
  const body = el("div", { class: "fall", role: "tree", "aria-label": "Spans", onkeydown: (event) => step(event, body) });
  view.draw = (focus) => {
    body.replaceChildren(axis(total), ...lines(view, total));
    const target = focus !== undefined && body.querySelector(`[data-row="${focus}"]`);
    if (target) target.focus();
  };
  view.draw();
  const all = (open) => () => {
    view.folded.clear();
    view.loops = new Set(open ? found.loops.map((_, at) => at) : []);
    view.draw();
  };
  const loops = found.loops.some((loop) => loop.first !== null);
  const point = (ids) => {
    view.pointed = new Set(ids);
    view.folded.clear();
    if (view.pointed.size <= FEW) view.rows.forEach((row, at) => view.pointed.has(row.id) && view.opened.add(at));
    found.loops.forEach((loop, at) => loop.calls.some(([row]) => view.pointed.has(view.rows[row].id)) && view.loops.add(at));
    view.draw();
    const first = body.querySelector(".line.pointed");
    if (first) { first.scrollIntoView({ block: "center" }); first.focus({ preventScroll: true }); }
  };
  const head = el("h2", {}, "Waterfall ", el("span", { class: "tools" },
    loops ? [el("button", { class: "link", type: "button", onclick: all(true) }, "Unfold loops"), el("button", { class: "link", type: "button", onclick: all(false) }, "Fold loops")] : null));
  const missing = found.left_out ? el("p", { class: "muted" }, `${many(found.left_out, "more span")} left out; agents, tools and errors are kept first.`) : null;
  return { nodes: [head, legend(found), body, missing], point };
}

// Row -> what is to be said of it: {text, state, reason}.
function marksOf(found, results) {
  const at = new Map(found.spans.map((row, index) => [row.id, index]));
  const marks = found.spans.map(() => []);
  const note = (id, mark) => { const row = at.get(id); if (row !== undefined) marks[row].push(mark); };
  found.loops.forEach((loop) => loop.calls.forEach(([row, round]) =>
    marks[row].push({ text: `↻ ${round}/${loop.rounds}`, state: "loop", reason: `round ${round} of ${loop.rounds}: ${loopName(loop)}` })));
  for (const [result, full] of results) {
    note(full.span, { text: `${MARK[standing(result)]} ${metricName(result.metric)} ${value(result)}`, state: standing(result), reason: full.reason || "" });
    if (result.metric === "trace.blame") {
      for (const [place, each] of ((full.metadata && full.metadata.candidates) || []).entries()) {
        note(each.span_id, { text: place ? "⚑ maybe" : "⚑ broke it", state: place ? "loop" : "fail", reason: each.reasons.join("; ") });
      }
      continue;
    }
    const verdicts = (full.metadata && full.metadata.verdicts) || [];
    if (result.metric === "trace.argument_correctness" && Array.isArray(verdicts)) {
      for (const each of verdicts) if (each && each.verdict === "no") note(found.calls[each.call - 1], { text: "✗ arguments", state: "fail", reason: each.reason || "" });
    } else if (result.metric !== "trace.tool_loop") {
      for (const id of full.spans || []) if (id !== full.span) note(id, { text: `${MARK[standing(result)]} ${metricName(result.metric)}`, state: standing(result), reason: full.reason || "" });
    }
  }
  return marks;
}

function loopName(loop) {
  return loop.kind === "ping_pong" ? loop.agents.join(" ⇄ ") : loop.tools.join(" → ");
}

function legend(found) {
  const kinds = [...new Set(found.spans.map((row) => row.kind))];
  return el("p", { class: "legend muted" }, kinds.map((kind) => el("span", {}, el("i", { class: `dot ${kind}` }), kind)),
    found.spans.some((row) => row.error !== undefined) ? el("span", {}, el("i", { class: "dot failed" }), "failed") : null,
    found.loops.length ? el("span", {}, el("i", { class: "dot loop" }), "repeated in vain") : null);
}

function axis(total) {
  return el("div", { class: "line axis", role: "presentation" }, el("span", {}), el("span", { class: "time" }, [0, 0.25, 0.5, 0.75, 1].map((share) =>
    el("span", { "--at": `${share * 100}%`, class: share === 1 ? "tick last" : "tick" }, duration(Math.round(total * share))))));
}

// The lines that are to be seen, folded parents and loops considered.
function lines(view, total) {
  const made = [];
  const starts = new Map(view.found.loops.map((loop, at) => [loop.first, at]).filter(([first]) => first !== null));
  let loop = null, hiddenBelow = Infinity;
  view.rows.forEach((row, at) => {
    if (loop !== null && at > view.found.loops[loop].last) loop = null;
    if (row.depth <= hiddenBelow) hiddenBelow = Infinity;
    if (starts.has(at)) {
      loop = starts.get(at);
      if (hiddenBelow === Infinity) made.push(loopLine(view, loop, row.depth, total));
    }
    if (hiddenBelow !== Infinity || (loop !== null && !view.loops.has(loop))) return;
    made.push(line(view, row, at, loop !== null, total));
    if (view.opened.has(at)) made.push(el("div", { class: "panel" }, panel(view, row, at)));
    if (view.folded.has(at)) hiddenBelow = row.depth;
  });
  return made;
}

function indent(depth) {
  return `${Math.min(depth, 14) * 14}px`;
}

function line(view, row, at, inLoop, total) {
  const parent = view.rows[at + 1] && view.rows[at + 1].depth > row.depth;
  const fold = parent ? el("span", { class: "twist", title: "Fold (←) and unfold (→)", onclick: (event) => { event.stopPropagation(); toggle(view, view.folded, at); } }, view.folded.has(at) ? "▸" : "▾") : el("span", { class: "twist" });
  const bad = row.error !== undefined ? "failed" : "";
  return el("div", { class: `line ${inLoop ? "in-loop" : ""} ${view.pointed.has(row.id) ? "pointed" : ""}`, role: "treeitem", tabindex: "0", "data-row": at,
    "aria-level": row.depth + 1, "aria-expanded": parent ? String(!view.folded.has(at)) : null,
    onclick: () => toggle(view, view.opened, at),
    onfold: (event) => { if (parent && view.folded.has(at) === event.detail) toggle(view, view.folded, at); } },
    el("span", { class: "what", "--indent": indent(row.depth) }, fold, el("i", { class: `dot ${row.kind} ${bad}` }),
      el("span", { class: "name" }, row.tool || row.name), row.model && row.kind === "llm" && !row.name.includes(row.model) ? el("span", { class: "muted model" }, row.model) : null,
      el("span", { class: "marks" }, bad ? el("span", { class: "tag fail", title: plainText(view, row.error) }, "✗ error") : null,
        view.marks[at].map((mark) => el("span", { class: `tag ${mark.state}`, title: mark.reason }, mark.text)))),
    el("span", { class: "time" }, el("i", { class: `span ${row.kind} ${bad} ${inLoop ? "again" : ""}`, "--at": `${(100 * row.at) / total}%`, "--wide": `${(100 * row.us) / total}%` }),
      took(row, total)));
}

// The duration stands after its bar; before it where there is no room, else on it.
function took(row, total) {
  const from = (100 * row.at) / total, to = (100 * (row.at + row.us)) / total;
  if (to < 86) return el("span", { class: "took", "--at": `${to}%` }, duration(row.us));
  if (from > 14) return el("span", { class: "took before", "--at": `${from}%` }, duration(row.us));
  return el("span", { class: "took on", "--at": `${from}%` }, duration(row.us));
}

// The later rounds of a loop as one line.
function loopLine(view, at, depth, total) {
  const loop = view.found.loops[at], open = view.loops.has(at);
  const calls = loop.calls.filter(([, round]) => round > 1).map(([row]) => view.rows[row]);
  const cost = [many(loop.wasted, "call") + " wasted", loop.seconds ? duration(Math.round(loop.seconds * 1e6)) : "", loop.tokens ? `${number(loop.tokens)} tokens` : ""].filter(Boolean).join(", ");
  return el("div", { class: "line loop", role: "treeitem", tabindex: "0", "data-row": `loop-${at}`, "aria-level": depth + 1, "aria-expanded": String(open),
    onclick: () => toggle(view, view.loops, at, `loop-${at}`),
    onfold: (event) => { if (open !== event.detail) toggle(view, view.loops, at, `loop-${at}`); } },
    el("span", { class: "what", "--indent": indent(depth) }, el("span", { class: "twist" }, open ? "▾" : "▸"), el("span", { class: "turns", "aria-hidden": "true" }, `↻ ×${loop.rounds}`),
      el("span", { class: "name" }, loopName(loop)), el("span", { class: "muted" }, `${number(loop.rounds - 1)} more ${loop.rounds === 2 ? "time" : "times"}, nothing new: ${cost}`)),
    el("span", { class: "time" }, calls.map((row) => el("i", { class: "span again", "--at": `${(100 * row.at) / total}%`, "--wide": `${(100 * row.us) / total}%` })),
      calls.length ? el("i", { class: "reach", "--at": `${(100 * calls[0].at) / total}%`, "--wide": `${(100 * (calls.at(-1).at + calls.at(-1).us - calls[0].at)) / total}%` }) : null));
}

function toggle(view, set, at, focus) {
  if (set.has(at)) set.delete(at); else set.add(at);
  view.draw(focus === undefined ? at : focus);
}

function step(event, body) {
  const current = event.target.closest(".line[data-row]");
  if (!current || event.target !== current) return;
  const all = [...body.querySelectorAll(".line[data-row]")];
  const at = all.indexOf(current);
  if (event.key === "ArrowDown" && all[at + 1]) all[at + 1].focus();
  else if (event.key === "ArrowUp" && all[at - 1]) all[at - 1].focus();
  else if (event.key === "Enter" || event.key === " ") current.click();
  else if (event.key === "ArrowLeft" || event.key === "ArrowRight") current.dispatchEvent(new CustomEvent("fold", { detail: event.key === "ArrowRight" }));
  else return;
  event.preventDefault();
}

function plainText(view, position) {
  const text = view.found.texts[position];
  return typeof text === "string" ? text : `${text.h} …`;
}

// All that is known of a span.
function panel(view, row, at) {
  const texts = view.found.texts;
  const loose = view.loose.get(row.id) || [];
  const side = (label, position, values) => position === undefined ? null : position === null ? notCaptured(label) : block(texts[position], label, "", values);
  const messages = (label, held, more, values) => held && el("div", { class: "messages" }, el("div", { class: "label" }, label, more ? ` (${many(more, "earlier part")} left out)` : ""),
    held.map(([who, position]) => block(texts[position], who, ["user", "assistant"].includes(who) ? who : "", values)));
  return [
    el("p", { class: "muted facts" }, [row.kind, row.name, row.agent && `agent ${row.agent}`, row.model, row.tokens && `${number(row.tokens[0])} + ${number(row.tokens[1])} tokens`,
      `starts at ${duration(Math.max(0, row.at))}`, `takes ${duration(row.us)}`, `span ${row.id}`].filter(Boolean).join(" · ")),
    view.marks[at].filter((mark) => mark.reason).map((mark) => el("p", { class: "said" }, el("span", { class: `tag ${mark.state}` }, mark.text), " ", mark.reason)),
    side("error", row.error), side("arguments", row.args, loose), side("result", row.result), side("documents", row.documents), side("system", row.system),
    messages("input", row.in, row.in_more), messages("output", row.out, row.out_more, loose)];
}
