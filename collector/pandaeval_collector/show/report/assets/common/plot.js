// Charts. uPlot draws them when they are in the document, and again when theme or width change.

const plots = new Map(); // by the element that holds it: {draw, made}

function plotted(holder, draw) {
  plots.set(holder, { draw, made: null });
  return holder;
}

function redrawn() {
  const style = getComputedStyle(document.documentElement);
  for (const [holder, each] of plots) {
    if (each.made) each.made.destroy();
    if (holder.isConnected) each.made = new uPlot(...each.draw(holder.clientWidth, (name) => style.getPropertyValue(name).trim()), holder);
    else plots.delete(holder);
  }
}

addEventListener("resize", later(redrawn));

// Common settings of all charts. `size`: width of bars, as a share of their places.
function plain2d(width, height, colour, size, more) {
  const axis = { stroke: colour("--muted"), grid: { show: false }, ticks: { show: false }, font: `11px ${getComputedStyle(document.body).fontFamily}` };
  return {
    width, height, legend: { show: false }, padding: [6, 8, 0, 0], ...more,
    series: [{}, ...more.series.map((fill) => ({ fill: colour(fill), width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [size, 100], align: 1 }) }))],
    axes: [{ ...axis, ...more.x, size: 22 }, { ...axis, size: 36, space: 36, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6], grid: { show: true, stroke: colour("--line"), width: 1 } }],
  };
}

// Full minutes, hours or days (UTC) between two moments in seconds, up to a maximum number.
function onTheHour(from, to, most) {
  const step = [60, 300, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800].find((each) => (to - from) / each <= most) || 86400 * Math.ceil((to - from) / most / 86400);
  const first = Math.ceil(from / step);
  return Array.from({ length: Math.max(0, Math.floor(to / step) - first + 1) }, (_, at) => (first + at) * step);
}

// Moments for the labels of an axis. No label extends beyond the axis.
function ticksOf(from, to, width) {
  const room = (30 * (to - from)) / width;
  return onTheHour(from + room, to - room, Math.max(1, (width - 104) / 90)); // beside the axis and both rooms
}

// A moment within a span: the day with the year if the span is about a year or more, else the day with the time.
function dated(ms, span) {
  return span > 300 * 86400e3 ? moment(ms).slice(0, 10) : moment(ms).slice(5, 16);
}

// Dashed lines at moments in milliseconds.
function lined({ ctx, bbox, valToPos }, moments, colour) {
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = 2 * devicePixelRatio;
  ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const at of moments) {
    const x = Math.round(valToPos(at / 1000, "x", true));
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

// Runs over time, failed runs on top. `marks`: moments to mark. `zoom`: receives both ends of the dragged range.
function overTime({ since, step, runs, failed, incident, marks }, zoom) {
  const what = incident ? "of this incident" : "with findings";
  const told = el("output", { class: "told muted" }, "drag to zoom");
  const bad = sum(failed), all = sum(runs);
  const holder = el("div", { class: "plot", role: "img", "aria-label": `${many(all, "run")} over time, ${number(bad)} ${what}` });
  const span = runs.length * step;
  const at = (s) => (span > 2 * 86400e3 ? dated(s * 1000, span) : moment(s * 1000).slice(11, 16));
  const xs = runs.map((_, bar) => (since + bar * step) / 1000);
  const draw = (width, colour) => [plain2d(width, width < 600 ? 120 : 150, colour, 0.85, {
    series: ["--bad", "--bar"], x: { values: (_, splits) => splits.map(at), splits: (_, __, from, to) => ticksOf(from, to, width) },
    scales: { x: { time: false, range: [xs[0], xs[0] + (runs.length * step) / 1000] }, y: { range: (_, __, most) => [0, Math.max(1, most)] } },
    cursor: { y: false, points: { show: false }, drag: { x: true, setScale: false } },
    hooks: {
      draw: [(u) => lined(u, marks, colour("--ink"))],
      setCursor: [(u) => {
        const bar = u.cursor.left < 0 ? -1 : Math.floor((u.posToVal(u.cursor.left, "x") * 1000 - since) / step);
        told.textContent = runs[bar] === undefined ? "drag to zoom" : `${at(xs[bar])} · ${many(runs[bar], "run")}, ${number(failed[bar])} ${what}`;
      }],
      setSelect: [(u) => {
        const { left, width: wide } = u.select;
        if (wide > 4) zoom(Math.round(1000 * u.posToVal(left, "x")), Math.round(1000 * u.posToVal(left + wide, "x")));
      }],
    },
  }), [xs, runs, runs.map((count, bar) => count - failed[bar])]];
  return el("figure", { class: "over-time" }, el("figcaption", {}, el("span", {}, el("i", { class: "dot", "--dot": "var(--bar)" }), "runs "), el("span", {}, el("i", { class: "dot", "--dot": "var(--bad)" }), what), told), plotted(holder, draw));
}

// Numbers as a row of small bars. `of`: a description for screen readers; `bad`: the failed part of each number.
function spark(values, of, bad) {
  const most = Math.max(1, ...values);
  return el("span", { class: "spark", role: "img", "aria-label": `${of}: ${values.join(", ")}` },
    values.map((value, at) => el("i", { "--tall": `${(100 * value) / most}%`, "--part": bad && value ? `${(100 * bad[at]) / value}%` : null })));
}
