// The steps of a trace as a conversation: questions, the model's words and calls, results and the answer, nested by agent.
// Spans that only wrap other spans are omitted; the waterfall shows all spans.

const WRAPPERS = ["workflow", "step", "other"];

// The rows with a line, their depth, and the bounds of turns. If a model call gave the answer, its line is the answer.
function conversationOf(found, marks) {
  const rows = found.spans, outer = outermost(rows);
  const isParent = (at) => rows[at + 1] !== undefined && rows[at + 1].depth > rows[at].depth;
  const endOf = (at) => { let end = at; while (rows[end + 1] && rows[end + 1].depth > rows[at].depth) end += 1; return end; };
  const broke = (at) => rows[at].error !== undefined && !rows.slice(at + 1, endOf(at) + 1).some((row) => row.error !== undefined);
  const isShown = (at) => !outer.has(at) && (!WRAPPERS.includes(rows[at].kind) || marks[at].length > 0 || broke(at));
  const depth = (at) => { let count = 0; for (let up = rows[at].up; up >= 0; up = rows[up].up) count += rows[up].kind === "agent" && isShown(up); return count; };
  const before = new Map(), after = new Map(), answers = new Map();
  const put = (map, at, item) => map.set(at, [...(map.get(at) || []), item]);
  const at = new Map(rows.map((row, place) => [row.id, place]));
  found.turns.forEach(([user, assistant, id], turn) => {
    const top = at.get(id) ?? 0, end = endOf(top), again = found.turns.slice(turn + 1).some(([, , other]) => other === id);
    const giver = assistant === null || again ? -1 : rows.findLastIndex((row, place) => place >= top && place <= end && row.kind === "llm" && (row.out || []).some(([, text]) => text === assistant));
    put(before, top, { key: `user-${turn}`, side: "user", text: user });
    if (giver >= 0) answers.set(giver, turn); else put(again ? before : after, again ? top : end, { key: `answer-${turn}`, side: "answer", text: assistant });
  });
  const crash = [...outer].reverse().find((place) => rows[place].error !== undefined || marks[place].length);
  return { before, after, answers, isParent, isShown, depth, crash, keyOf: (key) => (outer.has(key) && key !== crash ? [...before.values()].flat().map((item) => item.key)[0] : key) };
}

// The outermost rows that contain all other rows.
function outermost(rows) {
  const found = new Set();
  let inside = rows.flatMap((row, at) => (row.up < 0 ? [at] : []));
  while (inside.length === 1 && [...WRAPPERS, "agent"].includes(rows[inside[0]].kind) && rows.length > found.size + 1) {
    const [top] = inside;
    found.add(top);
    inside = rows.flatMap((row, at) => (row.up === top ? [at] : []));
  }
  return found;
}

function stepLines(view) {
  const turns = (items) => (items || []).map((item) => turnLine(view, item));
  const made = unfolded(view).flatMap((seen, at) => [...turns(view.before.get(at)), seen && view.isShown(at) ? stepLine(view, view.rows[at], at) : null, ...turns(view.after.get(at))]);
  if (!view.rows.length) made.push(...view.found.turns.flatMap(([user, answer], turn) => [turnLine(view, { key: `user-${turn}`, side: "user", text: user }), turnLine(view, { key: `answer-${turn}`, side: "answer", text: answer })]));
  if (view.crash !== undefined) made.push(stepLine(view, view.rows[view.crash], view.crash));
  return made.filter(Boolean);
}

// The user's question, or an answer without a step of its own.
function turnLine(view, { key, side, text }) {
  const isUser = side === "user", loose = isUser ? [] : looseAnswers(view.loose);
  return lineOf(view, key, { class: `line turn ${side}`, "aria-level": 1 },
    el("span", { class: "what" }, el("span", { class: "who" }, isUser ? "user" : "answer"), el("span", { class: "says", dir: "auto" }, text === null ? el("i", { class: "muted" }, isUser ? "not captured" : unanswered(view.trace, view.found)) : spoken(view, text, loose))));
}

function stepLine(view, row, at) {
  const isParent = view.isParent(at) && row.kind === "agent" && view.isShown(at), isAnswer = view.answers.has(at), bad = row.error !== undefined;
  const tokens = row.tokens && sum(row.tokens);
  return lineOf(view, at, { class: `line ${isAnswer ? "turn answer" : row.kind === "agent" ? "within" : "call"} ${inLoop(view, at) ? "in-loop" : ""} ${view.pointed.has(row.id) ? "pointed" : ""}`, "aria-level": view.depth(at) + 1, ...folding(view, at, isParent) },
    el("span", { class: "what", "--indent": indent(view.depth(at)) }, twist(view, at, isParent), isAnswer ? el("span", { class: "who" }, "answer") : el("i", { class: `dot ${row.kind} ${bad ? "failed" : ""}` }),
      el("span", { class: "says", dir: "auto" }, stepWords(view, row, at, isAnswer)),
      el("span", { class: "marks" }, bad ? el("span", { class: "tag fail", title: plainText(view, row.error) }, "✗ error") : null, tags(view.marks[at]))),
    el("span", { class: "beside muted" }, duration(row.us), tokens ? el("small", {}, `${compact(tokens)} tok`) : null));
}

// A step in a line or two: its input and its outcome.
function stepWords(view, row, at, isAnswer) {
  const loose = view.loose.get(row.id) || [];
  if (row.kind === "llm") return modelWords(view, row, isAnswer, loose);
  const name = el("b", {}, row.tool || (row.kind === "agent" && row.agent) || row.name);
  const came = row.error !== undefined ? el("span", { class: "came bad" }, "✗ ", oneLine(view, row.error, [])) : row.result === null ? el("span", { class: "came muted" }, "→ not captured") : row.result !== undefined ? el("span", { class: "came muted" }, "→ ", oneLine(view, row.result, []))
    : row.documents !== undefined ? el("span", { class: "came muted" }, "→ ", oneLine(view, row.documents, [])) : null;
  return [el("span", { class: "given" }, name, " ", row.args !== undefined && row.args !== null ? el("span", { class: "args" }, oneLine(view, row.args, loose)) : null), came];
}

function modelWords(view, row, isAnswer, loose) {
  const out = row.out || [];
  const said = out.filter(([who, text]) => !who.startsWith("asks for ") && who !== "thinking" && plainText(view, text).trim());
  const asks = out.filter(([who]) => who.startsWith("asks for ")).map(([who]) => who.slice(9));
  const model = row.name.endsWith("(compaction)") ? "compaction of the history" : row.model || row.name;
  if (isAnswer && said.length) return spoken(view, said.at(-1)[1], loose);
  if (!said.length && !asks.length) return el("span", { class: "given muted" }, row.name, " ", row.error === undefined ? null : el("span", { class: "came bad" }, "✗ ", oneLine(view, row.error, [])));
  return [said.length ? el("span", { class: "given" }, el("span", { class: "muted" }, `${model}: `), oneLine(view, said.at(-1)[1], loose)) : null,
    asks.length ? el("span", { class: "muted came" }, said.length ? "" : `${model} `, `asks for ${asks.join(", ")}`) : null];
}

// The first lines of a message.
function spoken(view, position, loose) {
  const text = view.found.texts[position];
  return text === "" ? el("i", { class: "muted" }, "empty") : el("span", { class: "spoken" }, words(text, loose));
}

// A text on a line; JSON without its braces.
function oneLine(view, position, loose) {
  const text = view.found.texts[position];
  if (typeof text !== "string") return words({ ...text, h: text.h.slice(0, 300), t: "", n: text.n }, loose).slice(0, 1);
  const value = parsed(text);
  return marked((value === undefined ? text : brief(value)).replace(/\s+/g, " ").slice(0, 400), loose);
}

function brief(value, inner = false) {
  if (value instanceof Exact) return value.text;
  if (Array.isArray(value)) return value.length ? `[${value.slice(0, 20).map((each) => brief(each, true)).join(", ")}]` : "[]";
  if (value === null || typeof value !== "object") return typeof value === "string" ? value : String(value);
  const pairs = Object.entries(value).slice(0, 20).map(([key, held]) => `${harmless(key)}: ${brief(held, true)}`).join(", ");
  return inner ? `{${pairs}}` : pairs || "{}";
}
