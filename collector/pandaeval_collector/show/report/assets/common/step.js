// A full step: messages, arguments and result as JSON that folds, and the scores that name it.

function stepOf(view, key) {
  if (typeof key === "string") return turnOf(view, key);
  const row = view.rows[key];
  return row ? panel(view, row, key) : el("p", { class: "muted" }, missingSpans(view.trace));
}

// A question, or an answer without a step of its own.
function turnOf(view, key) {
  const [side, turn] = key.split("-");
  const [user, assistant] = view.found.turns[turn];
  const text = side === "user" ? user : assistant, label = side === "user" ? "user" : "answer";
  return [el("h2", {}, side === "user" ? "Question" : "Answer", view.found.turns.length > 1 ? el("small", {}, ` turn ${Number(turn) + 1} of ${view.found.turns.length}`) : null),
    text === null ? notCaptured(label, side === "user" ? undefined : unanswered(view.trace, view.found)) : block(view.found.texts[text] === "" ? "(empty)" : view.found.texts[text], label, side === "user" ? "user" : "assistant", side === "user" ? [] : looseAnswers(view.loose), true)];
}

// All data of a span.
function panel(view, row, at) {
  const texts = view.found.texts, loose = view.loose.get(row.id) || [];
  const side = (label, position, values) => position === undefined ? null : position === null ? notCaptured(label) : readable(texts[position], label, values);
  const same = row.system === undefined ? "" : plainText(view, row.system).trim();
  const messages = (label, held, more, values, isWhole) => {
    const shown = (held || []).filter(([who, text]) => plainText(view, text).trim() && !(who === "system" && plainText(view, text).trim() === same));
    return shown.length ? el("div", { class: "messages" }, el("h3", {}, label, more ? el("small", {}, ` ${many(more, "earlier part")} left out`) : null),
      shown.map(([who, text]) => /^(asks for|result)/.test(who) ? readable(texts[text], who, values) : block(texts[text], who, ["user", "assistant"].includes(who) ? who : "", values, isWhole))) : null;
  };
  const facts = [row.kind, row.agent && `agent ${row.agent}`, row.model, row.tokens && `${number(row.tokens[0])} + ${number(row.tokens[1])} tokens`, duration(row.us), `at ${duration(Math.max(0, row.at))}`].filter(Boolean).join(" · ");
  return [
    el("h2", {}, el("i", { class: `dot ${row.kind} ${row.error === undefined ? "" : "failed"}` }), ` ${row.tool || row.name} `),
    el("p", { class: "muted facts" }, facts, row.tool && row.tool !== row.name ? ` · ${row.name}` : "", " · ", el("span", { class: "id" }, `span ${row.id}`)),
    view.marks[at].filter((mark) => mark.reason).map((mark) => el("p", { class: "said" }, tags([mark]), " ", mark.reason)),
    row.error === undefined ? null : block(texts[row.error], "error", "error", [], true), side("arguments", row.args, loose), side("result", row.result), side("documents", row.documents),
    messages("Output", row.out, row.out_more, loose, true), messages("Input", row.in, row.in_more, [], false),
    row.system === undefined ? null : block(texts[row.system], "system")];
}

function plainText(view, position) {
  const text = view.found.texts[position];
  return typeof text === "string" ? text : `${text.h} …`;
}

// A text; a JSON object or list becomes a tree.
function readable(text, label, loose) {
  const value = typeof text === "string" ? parsed(text) : undefined;
  return value === undefined || value === null || typeof value !== "object" || value instanceof Exact ? block(text, label, "", loose, true)
    : el("div", { class: "block" }, el("div", { class: "label" }, label), el("div", { class: "text json" }, tree(value, loose, 0)));
}

// A number in its original spelling.
class Exact {
  constructor(text) { this.text = text; }
}

// Whether this browser keeps the original spelling of numbers.
const AS_WRITTEN = JSON.parse("1", (_, value, context) => Boolean(context && context.source));

// JSON text in which characters that hide or reorder text are replaced by their names, as in the text around it.
function harmless(text) {
  return text.replace(/[^\P{C}\n\t\u200c\u200d]|[\u2028\u2029]/gu, (sign) => `\\u${sign.codePointAt(0).toString(16).padStart(4, "0")}`);
}

// The value of a JSON text; `undefined` if it is not JSON, or if a number would lose its spelling.
function parsed(text) {
  if (!/^\s*[[{]/.test(text) || text.length > 200000 || (!AS_WRITTEN && /\d{16}|\.\d*0\b/.test(text))) return undefined;
  try {
    return JSON.parse(text, (_, held, context) => (typeof held === "number" && AS_WRITTEN ? new Exact(context.source) : typeof held === "string" ? harmless(held) : held));
  } catch {
    return undefined;
  }
}

// Objects and lists fold. A string that contains JSON becomes a tree. `name`: the key of the value.
function tree(value, loose, depth, name) {
  const key = name === undefined ? null : [el("span", { class: "key" }, harmless(name)), " "];
  const inner = typeof value === "string" ? parsed(value) : undefined;
  if (inner !== undefined) return tree(inner, loose, depth, name);
  if (typeof value === "string") return [key, el("span", { class: "string", dir: "auto" }, marked(value, loose))];
  if (value instanceof Exact) return [key, el("span", { class: "number" }, marked(value.text, loose))];
  if (value === null || typeof value !== "object") return [key, el("span", { class: "number" }, String(value))];
  const list = Array.isArray(value), held = Object.entries(value);
  if (!held.length) return [key, el("span", { class: "muted" }, list ? "[]" : "{}")];
  const lines = el("ul", { class: "tree" }, held.slice(0, 200).map(([part, each]) => el("li", {}, tree(each, loose, depth + 1, list ? `${Number(part) + 1}` : part))),
    held.length > 200 ? el("li", { class: "muted" }, `${number(held.length - 200)} more`) : null);
  return depth ? el("details", { open: depth < 4 && held.length <= 12 }, el("summary", {}, key, el("small", {}, list ? many(held.length, "item") : many(held.length, "field"))), lines) : lines;
}
