// All spans of a trace over time, nested.

function timeLines(view) {
  const total = totalOf(view);
  return [legend(view), axis(total), ...unfolded(view).map((seen, at) => (seen ? timeLine(view, view.rows[at], at, inLoop(view, at), total) : null)).filter(Boolean)];
}

function totalOf(view) {
  return Math.max(1, ...view.rows.map((row) => row.at + row.us));
}

function legend(view) {
  const { found } = view;
  const kinds = [...new Set(found.spans.map((row) => row.kind))];
  return el("div", { class: "legend muted", role: "presentation" }, kinds.map((kind) => el("span", {}, el("i", { class: `dot ${kind}` }), kind)),
    found.spans.some((row) => row.error !== undefined) ? el("span", {}, el("i", { class: "dot failed" }), "failed") : null,
    found.spans.some((_, at) => inLoop(view, at)) ? el("span", {}, el("i", { class: "dot loop" }), "repeated without effect") : null);
}

function axis(total) {
  return el("div", { class: "line axis", role: "presentation" }, el("span", {}), el("span", { class: "time" }, [0, 0.5, 1].map((share) =>
    el("span", { "--at": `${share * 100}%`, class: share === 1 ? "tick last" : "tick" }, share ? duration(Math.round(total * share)) : "0"))));
}

function timeLine(view, row, at, isRepeated, total) {
  const isParent = view.isParent(at), bad = row.error !== undefined ? "failed" : "";
  return lineOf(view, at, { class: `line ${isRepeated ? "in-loop" : ""} ${view.pointed.has(row.id) ? "pointed" : ""}`, "aria-level": row.depth + 1, ...folding(view, at, isParent) },
    el("span", { class: "what", "--indent": indent(row.depth) }, twist(view, at, isParent) || el("span", { class: "twist" }), el("i", { class: `dot ${row.kind} ${bad}` }),
      el("span", { class: "name" }, row.tool || row.name), row.model && row.kind === "llm" && !row.name.includes(row.model) ? el("span", { class: "muted model" }, row.model) : null,
      el("span", { class: "marks" }, bad ? el("span", { class: "tag fail", title: plainText(view, row.error) }, "✗ error") : null, tags(view.marks[at]))),
    el("span", { class: "time" }, el("i", { class: `span ${row.kind} ${bad} ${isRepeated ? "again" : ""}`, "--at": `${(100 * row.at) / total}%`, "--wide": `${(100 * row.us) / total}%` }),
      took(row, total)));
}

// The duration is after its bar, else before it, else on it, depending on the room.
function took(row, total) {
  const from = (100 * row.at) / total, to = (100 * (row.at + row.us)) / total;
  if (to < 78) return el("span", { class: "took", "--at": `${to}%` }, duration(row.us));
  if (from > 22) return el("span", { class: "took before", "--at": `${from}%` }, duration(row.us));
  return el("span", { class: "took on", "--at": `${from}%` }, duration(row.us));
}
