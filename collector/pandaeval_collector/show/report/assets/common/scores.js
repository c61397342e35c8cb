// A result in full: score, evidence, reason and metadata.

function resultItem(result, full, onSpans) {
  const known = metric(result.metric);
  const spans = (full.spans || []).length;
  return el("div", { class: `result ${standing(result)}` },
    el("div", { class: "head" }, chip(result, false), el("h3", {}, metricName(result.metric)), el("code", { class: "muted" }, result.metric),
      full.metadata && full.metadata.band ? el("span", { class: "tag" }, String(full.metadata.band).replaceAll("_", " ")) : null,
      isSoFar(full) ? el("span", { class: "tag", title: "The session is open. The final score follows when it ends." }, "so far") : null,
      el("span", { class: "muted question" }, known.question)),
    result.spelled ? el("p", { class: "reason" }, el("b", {}, result.spelled)) : null,
    full.reason && full.reason !== result.spelled ? el("p", { class: "reason", dir: "auto" }, full.reason.startsWith(`${result.spelled}; `) ? full.reason.slice(result.spelled.length + 2) : full.reason) : null,
    comparisons(result, full),
    el("div", { class: "foot" },
      spans && onSpans ? el("button", { class: "link", type: "button", onclick: () => onSpans(full.spans) }, spans === 1 ? "Show the step" : `Show ${many(spans, "step")}`) : null,
      el("span", { class: "muted" }, grounds(result, full)), beside(full), noted(full)));
}

// A result without problems takes a line until it is opened.
function resultOrLine(result, full, onSpans) {
  if (!["pass", "assumed"].includes(standing(result))) return resultItem(result, full, onSpans);
  return el("details", { class: "result line-of" }, el("summary", {}, chip(result, false), el("b", {}, metricName(result.metric)),
    el("span", { class: "muted", dir: "auto" }, result.reason || "")), resultItem(result, full, onSpans));
}

function grounds(result, full) {
  const parts = [kindOf(full.by)[0] + (full.model ? ` (${full.model})` : "")];
  if (full.threshold !== undefined && result.outcome === "scored") parts.push(`passes at ${full.threshold} or more`);
  if (full.raw !== undefined) parts.push(`raw ${full.raw} on ${full.scale}`);
  if (full.coverage !== undefined && full.coverage < 1) parts.push(`covers ${percent(full.coverage)} of the evidence`);
  if (full.metadata && full.metadata.calibrated !== undefined) parts.push(`${score(full.metadata.calibrated)} on the calibrated scale`);
  if (full.tokens) parts.push(`${number(full.tokens)} judge tokens`);
  if (full.cost) parts.push(`$${full.cost.toFixed(4)}`);
  if (isSoFar(full)) parts.push("the session is open");
  else if (full.trigger && full.trigger !== "file") parts.push(`completed by ${full.trigger.replaceAll("_", " ")}`);
  return parts.join(" · ");
}

// The earlier answers that loop_detection compared with this answer.
function comparisons(result, full) {
  const held = full.metadata && full.metadata.comparisons;
  if (!Array.isArray(held) || !held.length) return null;
  if (result.success !== false && held.length < 2) return null;
  return el("ul", { class: "plain muted" }, held.filter((each) => each && each.trace_id).map((each) => {
    const href = traceHref(each.trace_id);
    const text = `with trace ${each.trace_index + 1}: similarity ${score(each.cosine_similarity)} × word overlap ${score(each.jaccard_similarity)} = ${score(each.hybrid_score)}`;
    return el("li", {}, href ? el("a", { href }, text) : text);
  }));
}

function noted(full) {
  const held = Object.entries(full.metadata || {}).filter(([key]) => !["comparisons", "cycles", "calibrated", "blame", "failure_group", "things", "broken_rules", "misstatements"].includes(key));
  if (!held.length) return null;
  return el("details", {}, el("summary", {}, "more"),
    el("dl", {}, held.map(([key, value]) => [el("dt", {}, key.replaceAll("_", " ")), el("dd", { dir: "auto" }, plain(value))])));
}

function plain(value) {
  if (value === null) return "–";
  if (typeof value === "number") return String(Math.round(value * 1e4) / 1e4);
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) return value.length ? el("ol", {}, value.map((each) => el("li", {}, plain(each)))) : "none";
  return el("dl", {}, Object.entries(value).map(([key, held]) => [el("dt", {}, key.replaceAll("_", " ")), el("dd", {}, plain(held))]));
}

const KIND = {
  code: ["by code", "deterministic rules"],
  embedding: ["by embedding", "compares topics and words, not correctness"],
  math: ["by formula", "computed from the traces of a session"],
  llm: ["by a judge", "the opinion of a model: read the reason"],
};

function kindOf(kind) {
  return KIND[kind] || [`by ${kind}`, ""];
}
