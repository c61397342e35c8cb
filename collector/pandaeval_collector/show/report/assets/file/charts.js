// Distributions of scores: a histogram per metric, stacked by agent, and a table of the numbers.

const BINS = 20, MOST_AGENTS = 6;

function distributions() {
  const { index } = store;
  const groups = new Map();
  const add = (result, agent, unit) => {
    if (result.outcome !== "scored" || result.selected || isExplaining(result.metric)) return;
    if (!groups.has(result.metric)) groups.set(result.metric, new Map());
    const agents = groups.get(result.metric);
    if (!agents.has(agent)) agents.set(agent, []);
    agents.get(agent).push([result, unit]);
  };
  for (const trace of index.traces) for (const result of trace.results) add(result, trace.agent || "(no name)", trace);
  for (const session of index.sessions) for (const result of session.results) add(result, (session.rows.at(-1) || {}).agent || "(no name)", session);
  if (!groups.size) return el("p", { class: "muted" }, "No metric gave a score.");
  const names = mostSeen(index.traces.map((trace) => trace.agent || "(no name)"));
  const keys = [...groups.keys()].sort();
  return [names.length > 1 ? agentLegend(names) : null, el("div", { class: "charts" }, keys.map((key) => chartCard(key, groups.get(key), names))),
    el("details", {}, el("summary", {}, "Show as table"), numbers(keys, groups))];
}

// Shared by all charts, so that an agent has the same colour in each chart.
function agentLegend(names) {
  const dots = names.slice(0, MOST_AGENTS).map((name, at) => el("span", {}, el("i", { class: "dot", "--dot": `var(--series-${at})` }), name));
  return el("p", { class: "legend muted" }, dots, names.length > MOST_AGENTS ? el("span", {}, el("i", { class: "dot", "--dot": "var(--muted)" }), many(names.length - MOST_AGENTS, "other agent")) : null);
}

function mostSeen(values) {
  const counts = new Map();
  for (const each of values) counts.set(each, (counts.get(each) || 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).map(([name]) => name);
}

function chartCard(key, agents, names) {
  const all = [...agents.values()].flat().map(([result]) => result);
  const failed = all.filter((result) => result.success === false).length;
  const open = all.some(isOpen) ? `, ${decided(tallied(all))}` : "";
  const mean = all.reduce((total, result) => total + result.score, 0) / all.length;
  const told = el("output", { class: "told muted" });
  const holder = el("div", { class: "plot", role: "img", "aria-label": `${metricName(key)}: ${many(all.length, "score")}, mean ${score(mean)}, ${number(failed)} failed` });
  return el("figure", { class: "card" }, el("figcaption", {}, el("b", {}, metricName(key)), " ", el("code", { class: "muted" }, key), el("div", { class: "muted" }, metric(key).question),
    el("div", { class: "muted" }, `${many(all.length, "score")}, mean ${score(mean)}, `, failed ? el("b", { class: "bad" }, `${number(failed)} failed`) : "none failed", open, told)), plotted(holder, (width, colour) => histogram(key, layered(agents, names), told, width, colour)));
}

// By agent, most frequent first, other agents last: {fill, counts}. Counts include the layers below.
function layered(agents, names) {
  const shown = names.slice(0, MOST_AGENTS).filter((name) => agents.has(name)).map((name) => [`--series-${names.indexOf(name)}`, agents.get(name)]);
  const rest = names.slice(MOST_AGENTS).flatMap((name) => agents.get(name) || []);
  const below = new Array(BINS).fill(0);
  return [...shown, ...(rest.length ? [["--muted", rest]] : [])].map(([fill, held]) => {
    for (const [result] of held) below[Math.min(BINS - 1, Math.floor(result.score * BINS + 1e-9))] += 1;
    return { fill, counts: [...below] };
  }).reverse();
}

// A bar links to its traces. A dashed line marks the threshold.
function histogram(key, layers, told, width, colour) {
  const threshold = metric(key).threshold;
  const binAt = (u) => (u.cursor.left < 0 ? -1 : Math.min(BINS - 1, Math.floor(u.posToVal(u.cursor.left, "x") * BINS)));
  const xs = Array.from({ length: BINS }, (_, at) => at / BINS);
  return [plain2d(width, 170, colour, 0.92, {
    series: layers.map((layer) => layer.fill), x: { splits: () => [0, 0.25, 0.5, 0.75, 1], values: (_, all) => all.map(String) },
    scales: { x: { time: false, range: [0, 1] }, y: { range: (_, __, most) => [0, Math.max(1, most)] } },
    cursor: { y: false, points: { show: false }, drag: { x: false } },
    hooks: {
      setCursor: [(u) => {
        const bin = binAt(u);
        told.textContent = bin < 0 ? "" : `; ${(bin / BINS).toFixed(2)} to ${((bin + 1) / BINS).toFixed(2)}: ${number(layers[0].counts[bin])}`;
      }],
      ready: [(u) => u.over.addEventListener("click", () => {
        const bin = binAt(u);
        if (bin >= 0 && isListable(key)) location.hash = `#/traces?metric=${encodeURIComponent(key)}&from=${bin / BINS}&to=${(bin + 1) / BINS}`;
      })],
      draw: [(u) => thresholdLine(u, threshold, colour("--bad"))],
    },
  }), [xs, ...layers.map((layer) => layer.counts)]];
}

function thresholdLine(u, threshold, colour) {
  if (threshold === null || threshold === undefined || threshold > 1) return;
  const { left, top, height } = u.bbox, x = u.valToPos(threshold, "x", true);
  u.ctx.save();
  u.ctx.strokeStyle = u.ctx.fillStyle = colour;
  u.ctx.setLineDash([4, 3]);
  u.ctx.beginPath();
  u.ctx.moveTo(Math.max(left + 1, x), top);
  u.ctx.lineTo(Math.max(left + 1, x), top + height);
  u.ctx.stroke();
  u.ctx.restore();
}

function numbers(keys, groups) {
  const rows = keys.flatMap((key) => [...groups.get(key)].map(([agent, held]) => {
    const values = held.map(([result]) => result.score).sort((a, b) => a - b);
    const at = (share) => values[Math.min(values.length - 1, Math.floor(share * values.length))];
    const failed = held.filter(([result]) => result.success === false).length;
    const open = held.some(([result]) => isOpen(result)) ? ` (${decided(tallied(held.map(([result]) => result)))})` : "";
    return el("tr", {}, [metricName(key), agent, number(values.length), score(sum(values) / values.length), score(at(0.05)), score(at(0.5)), number(failed) + open].map((text) => el("td", {}, text)));
  }));
  return el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ["metric", "agent", "scores", "mean", "worst 5 %", "median", "failed"].map((text) => el("th", { scope: "col" }, text)))), el("tbody", {}, rows)));
}
