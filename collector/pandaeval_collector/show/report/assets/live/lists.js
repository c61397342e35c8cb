// Lists of a window: sessions or traces, filtered by the collector, with the filters in the address.

const WINDOWS = [["1h", "last hour"], ["24h", "last 24 hours"], ["7d", "last 7 days"], ["all", "all that is kept"]];
const STEP = 10;

function windowOf(query) {
  return WINDOWS.find(([key]) => key === query.get("window")) || WINDOWS[1];
}

function pathOf(of, query) {
  const asked = new URLSearchParams({ of, window: windowOf(query)[0], limit: "50" });
  for (const name of ["agent", "service", "metric"]) if (query.get(name)) asked.set(name, query.get(name));
  if (query.get("q")) asked.set("text", query.get("q"));
  if (query.get("failed")) asked.set(query.get("metric") ? "success" : "failed", query.get("metric") ? "false" : "true");
  if (of === "traces" && query.get("order")) asked.set("order", query.get("order"));
  return `/page/index?${asked}`;
}

// The rows, and a button for more of them: of what is at hand, then of the collector.
async function listing(of, query) {
  const path = pathOf(of, query);
  const { body } = await ask(path);
  const list = (watched = { path, newest: body.newest, grown: false });
  const rows = el("div", { class: "rows" });
  const foot = el("div", {});
  const draw = ({ index, next }) => {
    const made = linked(index);
    const more = paged(made.order, of === "traces" ? 3 * STEP : STEP, (each) => of === "traces" ? traceRow(made.traces[each[1]]) : unitRow(unitOf(made, each)), rows);
    more.addEventListener("click", () => { list.grown = true; further(); });
    const on = next === null ? null : el("button", { class: "more", type: "button", hidden: true, onclick: async () => draw((await ask(`${path}&cursor=${next}`)).body) }, "Ask for more");
    const further = () => { if (on) on.hidden = !more.hidden; };
    further();
    foot.replaceChildren(...[more, on].filter(Boolean));
  };
  draw(body);
  said(`live · ${moment(Date.now(), false)} UTC`);
  return { body, rows: [rows, foot] };
}

function filters(of, query) {
  const kind = of === "traces" ? "traces" : "";
  const change = (name) => (event) => {
    const value = event.target.type === "checkbox" ? (event.target.checked ? "1" : "") : event.target.value;
    if (value) query.set(name, value); else query.delete(name);
    history.replaceState(null, "", `#/${kind}${query.size ? `?${query}` : ""}`);
    const held = event.target.id;
    show(true).then(() => { // as if it had not been made anew
      const field = held && document.getElementById(held);
      if (field) { field.focus(); if (field.setSelectionRange) field.setSelectionRange(field.value.length, field.value.length); }
    });
  };
  const named = (values) => [["", "any"], ...values.map((each) => [each, each])];
  const asked = [...new Set(whole.rates.map((rate) => `${rate.level}.${rate.metric}`))].sort();
  const field = (label, name, options) => { const made = choice(label, name, options, query, change); made.querySelector("select").id = `by-${name}`; return made; };
  return el("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
    field("Window", "window", [WINDOWS[1], WINDOWS[0], WINDOWS[2], WINDOWS[3]]),
    field("Agent", "agent", named(whole.agents)), whole.services.length > 1 && field("Service", "service", named(whole.services)),
    field("Metric", "metric", [["", "any"], ...asked.map((key) => [key, metricName(key)])]),
    of === "traces" && field("Order", "order", [["worst", "worst first"], ["newest", "newest first"]]),
    el("label", {}, "Search ", el("input", { type: "search", id: "search", value: query.get("q") || "", placeholder: "question or answer ( / )", oninput: later(change("q")) })),
    el("label", { class: "check" }, "Only ", el("span", {}, el("input", { type: "checkbox", id: "by-failed", checked: query.get("failed") === "1", onchange: change("failed") }), query.get("metric") ? " failed in it" : " failed")));
}

async function tracesPage(query) {
  const { body, rows } = await listing("traces", query);
  return [el("h1", {}, "Traces"), raised(), filters("traces", query), el("p", { class: "muted", role: "status" }, counted(body, query)), rows];
}

function counted(body, query) {
  const [key, name] = windowOf(query);
  const of = key === "all" ? "" : ` of the ${name}`;
  if (body.traces !== null) return `${many(body.traces, "trace")}${of}, ${number(body.failed)} failed`;
  const here = body.index.order.length;
  return here ? `${body.next === null ? "" : "more than "}${many(here, "trace")}${of}` : `No trace${of} matches`;
}
