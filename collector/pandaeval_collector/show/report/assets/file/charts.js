// Distributions of scores: per metric a histogram, stacked by agent, and the numbers in a table.

const BINS = 20, MOST_AGENTS = 6;
const charts = [];

function distributions() {
  const { index } = store;
  const groups = new Map();
  const add = (result, agent, unit) => {
    if (result.outcome !== "scored") return;
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
  charts.length = 0;
  return [names.length > 1 ? agentLegend(names) : null, el("div", { class: "charts" }, keys.map((key) => chartCard(key, groups.get(key), names))),
    el("details", {}, el("summary", {}, "The same as numbers"), numbers(keys, groups))];
}

// One for all charts: an agent has the same colour in each.
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
  const mean = all.reduce((total, result) => total + result.score, 0) / all.length;
  const canvas = el("canvas", { role: "img", "aria-label": `${metricName(key)}: ${many(all.length, "score")}, mean ${score(mean)}, ${number(failed)} failed` });
  charts.push({ key, agents, names, canvas });
  return el("figure", { class: "card" }, el("figcaption", {}, el("b", {}, metricName(key)), el("div", { class: "muted" }, metric(key).question),
    el("div", { class: "muted" }, `${many(all.length, "score")}, mean ${score(mean)}, `, failed ? el("b", { class: "bad" }, `${number(failed)} failed`) : "none failed")), el("div", { class: "canvas" }, canvas));
}

function drawCharts() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  for (const each of charts) {
    if (!each.canvas.isConnected) continue;
    if (each.chart) each.chart.destroy();
    each.chart = new Chart(each.canvas, settings(each, colour));
  }
}

function settings({ key, agents, names }, colour) {
  const shown = names.slice(0, MOST_AGENTS).filter((name) => agents.has(name));
  const rest = names.slice(MOST_AGENTS).filter((name) => agents.has(name));
  const datasets = shown.map((name) => dataset(name, agents.get(name), colour(`--series-${names.indexOf(name)}`)));
  if (rest.length) datasets.push(dataset(many(rest.length, "other agent"), rest.flatMap((name) => agents.get(name)), colour("--muted")));
  const small = { color: colour("--muted"), font: { size: 11, family: getComputedStyle(document.body).fontFamily } };
  const threshold = metric(key).threshold;
  return {
    type: "bar",
    data: { labels: Array.from({ length: BINS }, (_, at) => (at / BINS).toFixed(2)), datasets },
    options: {
      layout: { padding: { bottom: 18, right: 8 } },
      animation: false, responsive: true, maintainAspectRatio: false,
      scales: {
        x: { stacked: true, grid: { display: false }, border: { color: colour("--line") }, ticks: { display: false } },
        y: { stacked: true, beginAtZero: true, grid: { color: colour("--line") }, border: { display: false }, ticks: { ...small, precision: 0, maxTicksLimit: 5 } },
      },
      plugins: {
        legend: { display: false },
        tooltip: { callbacks: { title: ([item]) => `score ${(item.dataIndex / BINS).toFixed(2)} to ${((item.dataIndex + 1) / BINS).toFixed(2)}` } },
      },
      onClick: (_, [item]) => { if (item && metric(key).level !== "session") location.hash = `#/traces?metric=${encodeURIComponent(key)}&from=${item.index / BINS}&to=${(item.index + 1) / BINS}`; },
    },
    plugins: [{ id: "scale", afterDatasetsDraw: (chart) => { edges(chart, small); thresholdLine(chart, threshold, colour("--bad")); } }],
  };
}

// The scale, written at the edges of the bins, where the scores are that it names.
function edges(chart, { color, font }) {
  const { left, right, bottom } = chart.chartArea;
  chart.ctx.save();
  chart.ctx.fillStyle = color;
  chart.ctx.font = `${font.size}px ${font.family}`;
  chart.ctx.textAlign = "center";
  for (const share of [0, 0.25, 0.5, 0.75, 1]) chart.ctx.fillText(String(share), left + (right - left) * share, bottom + 14);
  chart.ctx.restore();
}

// The threshold, as a dashed line between the bars.
function thresholdLine(chart, threshold, colour) {
  if (threshold === null || threshold === undefined || threshold > 1) return;
  const { left, right, top, bottom } = chart.chartArea;
  const x = left + (right - left) * threshold;
  chart.ctx.save();
  chart.ctx.strokeStyle = chart.ctx.fillStyle = colour;
  chart.ctx.setLineDash([4, 3]);
  chart.ctx.beginPath();
  chart.ctx.moveTo(x, top);
  chart.ctx.lineTo(x, bottom);
  chart.ctx.stroke();
  chart.ctx.font = `11px ${getComputedStyle(document.body).fontFamily}`;
  chart.ctx.fillText(`passes from ${threshold}`, Math.min(x + 4, right - 90), top + 10);
  chart.ctx.restore();
}

function dataset(label, held, colour) {
  const data = new Array(BINS).fill(0);
  for (const [result] of held) data[Math.min(BINS - 1, Math.floor(result.score * BINS + 1e-9))] += 1;
  const seen = data.map((count) => count || null); // one score among thousands is to be seen, none is not
  return { label, data: seen, backgroundColor: colour, categoryPercentage: 1, barPercentage: 0.92, minBarLength: 3 };
}

function numbers(keys, groups) {
  const rows = keys.flatMap((key) => [...groups.get(key)].map(([agent, held]) => {
    const values = held.map(([result]) => result.score).sort((a, b) => a - b);
    const at = (share) => values[Math.min(values.length - 1, Math.floor(share * values.length))];
    const failed = held.filter(([result]) => result.success === false).length;
    return el("tr", {}, [metricName(key), agent, number(values.length), score(sum(values) / values.length), score(at(0.05)), score(at(0.5)), number(failed)].map((text) => el("td", {}, text)));
  }));
  return el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ["metric", "agent", "scores", "mean", "worst 5 %", "median", "failed"].map((text) => el("th", { scope: "col" }, text)))), el("tbody", {}, rows)));
}
