// A trace in two panes. The left pane lists the steps, as a conversation or over time. The right pane shows the chosen
// step. Below 1100 pixels there is a single pane, and an open step replaces the list.

const VIEWS = { steps: ["Conversation", stepLines], time: ["Waterfall", timeLines] };
const WIDE = matchMedia("(min-width: 1100px)");

let current = null; // the view of the trace that is shown, for the keys

// `start`: ids of the spans to point to, the first is chosen; `reading`: whether the step also opens on a phone.
function panes(trace, found, results, start, reading) {
  const rows = found.spans, marks = marksOf(found, results);
  const view = { trace, found, rows, marks, loose: looseOf(results), folded: new Set(), pointed: new Set(), shape: "steps", chosen: null, ...conversationOf(found, marks) };
  view.list = el("div", { class: "fall", role: "tree", "aria-label": "Steps", onkeydown: (event) => { if (steer(view, event.key)) event.preventDefault(); } });
  view.pane = el("section", { class: "panel card", "aria-label": "The chosen step", tabindex: "0" });
  view.whole = el("div", { class: "panes" }, el("div", { class: "list" }, view.list), view.pane);
  view.tools = el("span", { class: "tools" });
  const missing = found.left_out ? el("p", { class: "muted" }, `${many(found.left_out, "more span")} left out; agents, tools and errors are kept first.`) : null;
  point(view, start, reading);
  return { nodes: [el("h2", { class: "views" }, view.tools), view.whole, missing], view };
}

function draw(view) {
  const shown = VIEWS[view.shape][1](view);
  view.list.replaceChildren(...shown);
  view.list.className = `fall ${view.shape}`;
  const button = (text, run, on) => el("button", { class: on === undefined ? "link" : "pill", type: "button", "aria-pressed": on === undefined ? null : String(on), onclick: run }, text);
  view.tools.replaceChildren(...Object.entries(VIEWS).map(([shape, [name]]) => button(name, () => { view.shape = shape; draw(view); }, shape === view.shape)), button("Keys ?", keyHelp));
  settled(view);
}

// Marks the line of the chosen step. Tab reaches only this line.
function settled(view) {
  const lines = [...view.list.querySelectorAll("[data-row]")];
  const chosen = lines.find((line) => line.dataset.row === String(view.chosen)) || lines.find((line) => line.dataset.row === String(view.shape === "steps" ? view.keyOf(view.chosen) : rowOf(view, view.chosen))) || lines[0];
  for (const line of lines) {
    line.setAttribute("aria-selected", String(line === chosen));
    line.tabIndex = line === chosen ? 0 : -1;
  }
  return chosen;
}

// Shows a step in the right pane. `key`: a row's position, `user-0` or `answer-0` of a turn.
function choose(view, key, { focus = true, reading = false, address = true } = {}) {
  view.chosen = key;
  view.pane.replaceChildren(el("button", { class: "link back", type: "button", onclick: () => { view.whole.classList.remove("reading"); const line = settled(view); if (line) line.focus(); } }, "← All steps"), ...[stepOf(view, key)].flat(5).filter(Boolean));
  view.pane.scrollTop = 0;
  view.whole.classList.toggle("reading", reading);
  const line = settled(view);
  if (focus && line) line.focus({ preventScroll: true });
  if (line && line.isConnected) line.scrollIntoView({ block: "nearest" });
  const row = view.rows[key];
  if (address && row && location.hash.includes("/t")) history.replaceState(null, "", `${location.hash.split("?")[0]}?span=${row.id}`);
}

// The last answer. Reading begins there if no step is wrong.
function ending(view) {
  const last = view.found.turns.length - 1, giver = [...view.answers.keys()].at(-1);
  return view.answers.get(giver) === last && last >= 0 ? giver : last < 0 ? 0 : `answer-${last}`;
}

// The row of a turn's question or answer, in the waterfall.
function rowOf(view, key) {
  const turn = view.found.turns[String(key).split("-")[1]];
  return turn ? view.rows.findIndex((row) => row.id === turn[2]) : key;
}

// Scrolls only the list, until the chosen step is visible.
function reveal(view) {
  const line = view.list.querySelector('[aria-selected="true"]'), box = view.list.parentElement;
  if (line && box && line.offsetTop + line.offsetHeight > box.clientHeight) box.scrollTop = line.offsetTop - box.clientHeight / 3;
}

// Points to spans: unfolds their rows, and chooses the first span.
function point(view, ids, reading = false, focus = false) {
  view.pointed = new Set(ids);
  view.folded.clear();
  draw(view);
  const first = view.rows.findIndex((row) => row.id === ids[0]);
  choose(view, first >= 0 ? first : ending(view), { focus, reading, address: false });
}

// Handles a key, and returns whether it had an effect. Arrow keys work only if the list has the focus.
function steer(view, key) {
  const lines = [...view.list.querySelectorAll("[data-row]")];
  const focused = lines.indexOf(document.activeElement);
  const at = focused >= 0 ? focused : lines.findIndex((line) => line.getAttribute("aria-selected") === "true");
  const to = { j: at + 1, ArrowDown: at + 1, k: at - 1, ArrowUp: at - 1, Home: 0, End: lines.length - 1 }[key];
  const reading = view.whole.classList.contains("reading");
  if (to !== undefined) {
    if (!lines[to]) return true;
    const next = lines[to].dataset.row;
    choose(view, /^\d+$/.test(next) ? Number(next) : next, { reading });
  } else if (["Enter", " "].includes(key) && lines[at]) {
    view.whole.classList.add("reading");
    view.pane.focus();
  } else if (key === "Escape") {
    view.whole.classList.remove("reading");
    if (lines[at]) lines[at].focus();
  } else if (["ArrowLeft", "ArrowRight"].includes(key) && lines[at]) {
    lines[at].dispatchEvent(new CustomEvent("fold", { detail: key === "ArrowRight" }));
  } else return false;
  return true;
}

function toggle(view, set, at) {
  if (set.has(at)) set.delete(at); else set.add(at);
  draw(view);
  const line = settled(view);
  if (line) line.focus({ preventScroll: true });
}

const KEYS = [["j  k  ↓  ↑", "next and previous step"], ["←  →", "fold and unfold"], ["Enter", "read the step"], ["Esc", "back to the steps"], ["n  p", "next and previous trace of the session"], ["/", "search"], ["?", "this help"]];

function keyHelp() {
  const box = el("dialog", { class: "card keys", "aria-label": "Keys", onclose: () => box.remove() }, el("h2", {}, "Keys"),
    el("dl", {}, KEYS.map(([key, does]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, does)])), el("form", { method: "dialog" }, el("button", { class: "more" }, "Close")));
  document.body.append(box);
  box.showModal();
}

// Notes by row: {text, state, reason}. Notes about the whole run are above the steps, not at its root.
function marksOf(found, results) {
  const at = new Map(found.spans.map((row, index) => [row.id, index]));
  const marks = found.spans.map(() => []);
  const note = (id, mark) => {
    const row = at.get(id);
    if (row !== undefined && !marks[row].some(({ text }) => text === mark.text)) marks[row].push(mark);
  };
  for (const [result, full] of results) {
    const held = full.metadata || {}, state = standing(result), reason = full.reason || "";
    if (result.label === "dismissed") continue;
    if (result.metric === "trace.blame") {
      for (const [place, each] of (held.candidates || []).entries()) {
        note(each.span_id, { text: place ? "⚑ possible cause" : "⚑ first wrong step", state: place ? "loop" : "fail", reason: each.reasons.join("; ") });
      }
    } else if (result.metric === "trace.argument_correctness" && Array.isArray(held.verdicts)) {
      for (const each of held.verdicts) if (each && each.verdict === "no") note(found.calls[each.call - 1], { text: "✗ arguments", state: "fail", reason: each.reason || "" });
    } else if (result.metric === "trace.tool_loop") {
      for (const loop of held.cycles || []) {
        const each = loop.span_ids.length / loop.rounds; // calls of a round
        loop.span_ids.forEach((id, place) => {
          const round = Math.min(loop.rounds, Math.floor(place / each) + 1);
          note(id, { text: `↻ ${round}/${loop.rounds}`, state: "loop", reason: `round ${round} of ${loop.rounds}: ${loopName(loop)}` });
        });
      }
    } else {
      const name = state === "fail" ? failureName(result) : metricName(result.metric);
      for (const id of full.spans || []) if (id !== full.span || isOfTurn(result)) note(id, { text: `${MARK[state]} ${name}`, state, reason });
    }
  }
  return marks;
}

function loopName(loop) {
  return loop.kind === "ping_pong" ? loop.agents.join(" ⇄ ") : loop.tools.join(" → ");
}

function tags(marks) {
  return marks.map((mark) => el("span", { class: `tag ${mark.state}`, title: mark.reason }, mark.text));
}

// By row: whether it is visible, and not below a folded row.
function unfolded(view) {
  let hiddenBelow = Infinity;
  return view.rows.map((row, at) => {
    if (row.depth <= hiddenBelow) hiddenBelow = Infinity;
    const seen = hiddenBelow === Infinity;
    if (seen && view.folded.has(at)) hiddenBelow = row.depth;
    return seen;
  });
}

// Whether a row is a call of a loop.
function inLoop(view, at) {
  return view.marks[at].some((mark) => mark.text.startsWith("↻"));
}

// The common parts of a line in both views. `fold`: of a row with rows below it.
function lineOf(view, key, more, ...kids) {
  return el("div", { role: "treeitem", tabindex: "-1", "data-row": key, onclick: () => choose(view, key, { reading: !WIDE.matches }), ...more }, kids);
}

function twist(view, at, isParent) {
  return isParent ? el("span", { class: "twist", title: "Fold (←) and unfold (→)", onclick: (event) => { event.stopPropagation(); toggle(view, view.folded, at); } }, view.folded.has(at) ? "▸" : "▾") : null;
}

function folding(view, at, isParent) {
  return isParent ? { "aria-expanded": String(!view.folded.has(at)), onfold: (event) => { if (view.folded.has(at) === event.detail) toggle(view, view.folded, at); } } : {};
}

function indent(depth) {
  return `${Math.min(depth, 14) * 16}px`;
}
