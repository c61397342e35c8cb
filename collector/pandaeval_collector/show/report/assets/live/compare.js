// Two ticked traces next to each other, with aligned steps.

const TICKED = new Set();
const MOST_STEPS = 400;

// A list row with a box to tick its trace. `more`: other elements of the row.
function tickable(row, id, more) {
  if (!id) return row;
  return el("div", { class: "tickable" }, el("input", { type: "checkbox", "aria-label": "Tick this trace to compare it", checked: TICKED.has(id), "data-trace": id, onchange: ({ target }) => {
    TICKED.delete(id);
    if (target.checked) TICKED.add(id);
    if (TICKED.size > 2) TICKED.delete([...TICKED][0]);
    drawTicks();
  } }), row, more);
}

function drawTicks() {
  for (const box of document.querySelectorAll(".tickable > input")) box.checked = TICKED.has(box.dataset.trace);
  const known = document.querySelector(".ticks");
  if (known) known.remove();
  if (!TICKED.size) return;
  const [a, b] = TICKED;
  document.body.append(el("section", { class: "ticks", role: "status", "aria-label": "Ticked traces" }, b ? el("a", { class: "more", href: `#/compare?a=${a}&b=${b}` }, "Compare the two") : "Tick another trace to compare the two.",
    el("button", { class: "link", type: "button", onclick: () => { TICKED.clear(); drawTicks(); } }, "Clear")));
}

async function comparePage(query) {
  const [a, b] = await Promise.all(["a", "b"].map(async (name) => {
    const { body } = await ask(`/page/traces/${encodeURIComponent(query.get(name) || "")}`);
    const [trace] = linked(body.index).traces;
    return { trace, found: body.detail, name, steps: body.detail ? stepsOf(body.detail) : [] };
  }));
  TICKED.clear();
  onArrival(drawTicks);
  const pairs = aligned(a.steps, b.steps), apart = pairs.findIndex(([one, other]) => !isAlike(one, other)), alike = pairs.filter(([one, other]) => isAlike(one, other)).length;
  return [
    el("nav", { class: "crumbs", "aria-label": "Where you are" }, el("a", { href: home() }, "Overview"), " / compare"),
    el("div", { class: "top" }, el("h1", {}, a.trace.in !== undefined && a.trace.in === b.trace.in ? ["One question, two traces"] : "Two traces"),
      el("span", { class: "muted", role: "status" }, apart < 0 ? `all ${number(pairs.length)} steps are equal` : `${number(alike)} of ${many(pairs.length, "step")} equal; first difference: `, apart < 0 ? null : el("a", { href: "#apart", onclick: (event) => { event.preventDefault(); document.querySelector(".pair.first").scrollIntoView({ block: "center" }); } }, wordsOf(pairs[apart])))),
    el("div", { class: "cards two" }, [a, b].map(sideOf)),
    scoresApart(a.trace, b.trace),
    el("h2", {}, "Steps ", el("small", {}, "equal steps are grey; click a step to open it in its trace")),
    el("div", { class: "rows pairs" }, pairs.map((pair, at) => pairRow(pair, [a, b], at === apart))),
  ];
}

// Facts about a trace above its steps.
function sideOf({ trace, name, found }) {
  const facts = [trace.agent, found && found.models.join(", "), duration(trace.us), sum(trace.tokens) && `${number(sum(trace.tokens))} tokens`, trace.usd && dollars(trace.usd), many(trace.tools, "tool call"), many(trace.llm, "model call")];
  return el("section", { class: "card side" }, el("h2", {}, el("span", { class: "letter" }, name), el("a", { href: traceHref(trace.id), dir: "auto" }, trace.in || trace.agent || trace.id)),
    el("p", { class: "muted" }, facts.filter(Boolean).join(" · "), " · ", when(trace.at)), el("p", {}, crashed(trace), chips(trace.results)), found ? null : el("p", { class: "muted" }, missingSpans()));
}

// The metrics in which the traces differ.
function scoresApart(a, b) {
  const of = (trace) => new Map(trace.results.map((result) => [result.metric, result]));
  const [one, other] = [of(a), of(b)];
  const keys = [...new Set([...one.keys(), ...other.keys()])].filter((key) => !isExplaining(key) && JSON.stringify([one, other].map((each) => each.get(key) && value(each.get(key)))[0]) !== JSON.stringify(other.get(key) && value(other.get(key))));
  const cell = (result) => el("td", {}, result ? chip(result, false) : el("span", { class: "muted" }, "–"));
  return keys.length ? [el("h2", {}, "Scores that differ"), el("div", { class: "scroll card", tabindex: "0" }, el("table", { class: "apart" }, el("thead", {}, el("tr", {}, ["metric", "a", "b"].map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, keys.map((key) => el("tr", {}, el("th", { scope: "row" }, metricName(key)), cell(one.get(key)), cell(other.get(key)))))))] : null;
}

// The steps of a trace: questions, words and calls of models, tools with arguments and results, answers.
function stepsOf(found) {
  const text = (at) => (at === undefined || at === null ? "" : typeof found.texts[at] === "string" ? found.texts[at] : `${found.texts[at].h} … ${found.texts[at].t}`);
  const outer = outermost(found.spans), steps = [];
  for (const [user] of found.turns) if (user !== null) steps.push({ key: "question", name: "question", given: text(user), came: "" });
  found.spans.forEach((row, at) => {
    if (outer.has(at) || WRAPPERS.includes(row.kind)) return;
    const said = (row.out || []).filter(([who]) => who !== "thinking").map(([who, place]) => (who.startsWith("asks for ") ? `${who} ${text(place)}` : text(place))).join("\n");
    const name = row.tool || (row.kind === "agent" && row.agent) || (row.kind === "llm" ? "model" : row.name);
    steps.push({ key: `${row.kind} ${name}`, name, kind: row.kind, id: row.id, us: row.us, given: row.kind === "llm" ? "" : text(row.args), came: row.error !== undefined ? `✗ ${text(row.error)}` : row.kind === "llm" ? said : text(row.result ?? row.documents) });
  });
  const last = found.turns.at(-1);
  if (last && last[1] !== null) steps.push({ key: "answer", name: "answer", given: "", came: text(last[1]) });
  return steps.slice(0, MOST_STEPS);
}

function isAlike(one, other) {
  return Boolean(one && other && one.given === other.given && one.came === other.came);
}

function wordsOf([one, other]) {
  return (one || other).name + (one && other ? "" : one ? ", only in a" : ", only in b");
}

// Pairs of steps from the longest common sequence. A step without a partner is alone in its row.
function aligned(a, b) {
  const best = Array.from({ length: a.length + 1 }, () => new Float64Array(b.length + 1));
  const worth = (one, other) => (one.key !== other.key ? 0 : 1 + 0.5 * (one.given === other.given) + 0.25 * (one.came === other.came));
  for (let i = a.length - 1; i >= 0; i -= 1) for (let j = b.length - 1; j >= 0; j -= 1) {
    const here = worth(a[i], b[j]);
    best[i][j] = Math.max(best[i + 1][j], best[i][j + 1], here && here + best[i + 1][j + 1]);
  }
  const pairs = [];
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    const here = i < a.length && j < b.length ? worth(a[i], b[j]) : 0;
    if (here && best[i][j] === here + best[i + 1][j + 1]) pairs.push([a[i++], b[j++]]);
    else if (j >= b.length || (i < a.length && best[i + 1][j] >= best[i][j + 1])) pairs.push([a[i++], null]);
    else pairs.push([null, b[j++]]);
  }
  return pairs;
}

function pairRow(pair, sides, isFirst) {
  const alike = isAlike(...pair);
  return el("div", { class: `pair ${alike ? "alike" : pair[0] && pair[1] ? "" : "lone"} ${isFirst ? "first" : ""}` }, pair.map((step, at) => {
    const other = pair[1 - at], { trace, name } = sides[at];
    if (!step) return el("div", { class: "half none muted" }, el("span", { class: "letter" }, name), "–");
    const href = step.id ? `${traceHref(trace.id)}?span=${step.id}` : traceHref(trace.id);
    return el("a", { class: "half", href }, el("span", { class: "letter" }, name), el("span", { class: "words" }, el("b", {}, step.kind ? el("i", { class: `dot ${step.kind}` }) : "", ` ${step.name} `, step.us === undefined ? "" : el("small", {}, duration(step.us))),
      step.given && el("span", { class: "given", dir: "auto" }, differing(step.given, other && other.given)), step.came && el("span", { class: "came", dir: "auto" }, step.given ? "→ " : "", differing(step.came, other && other.came))));
  }));
}

// A shortened text, in which the part that differs from the other text is marked.
function differing(text, other) {
  const cut = (from, to) => text.slice(from, to).replace(/\s+/g, " ");
  if (!other || other === text) return cut(0, 400);
  let head = 0, tail = 0;
  while (head < text.length && text[head] === other[head]) head += 1;
  while (tail < Math.min(text.length, other.length) - head && text.at(-1 - tail) === other.at(-1 - tail)) tail += 1;
  const inWord = (at) => at > 0 && at < text.length && /\w\w/.test(text.slice(at - 1, at + 1));
  while (inWord(head)) head -= 1;
  while (tail > 0 && inWord(text.length - tail)) tail -= 1;
  const from = Math.max(0, head - 120), end = text.length - tail;
  return [from ? "… " : "", cut(from, head), end > head ? el("mark", { class: "diff" }, cut(head, Math.min(end, head + 400))) : "", cut(end, end + 120)];
}
