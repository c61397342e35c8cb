// Lists of sessions or traces in a time window. The address contains the filters, and the collector applies them.

const WINDOWS = [["1h", "last hour", "1 h"], ["6h", "last 6 hours", "6 h"], ["24h", "last 24 hours", "24 h"], ["7d", "last 7 days", "7 d"], ["all", "", "all"]];
const STEP = 10;
const CHOSEN = ["agent", "service", "environment", "user", "metric", "q", "failed", "label", "incident", "attribute", "min_seconds", "min_usd"]; // what filters choose by: runs, then their results and texts
const OPEN = ["unclear", "disputed"]; // verdicts that decide nothing
const VIEW = ["window", "since", "until", ...CHOSEN, "order", "state"];

function windowName(query) {
  return isZoomed(query) ? "chosen time" : (WINDOWS.find(([key]) => key === query.get("window")) || WINDOWS[2])[1];
}

function isZoomed(query) {
  return query.get("since") !== null || query.get("until") !== null;
}

// The address of another page with the same view.
function carried(query) {
  const kept = new URLSearchParams([...query].filter(([name]) => VIEW.includes(name)));
  return kept.size ? `?${kept}` : "";
}

// The view's query for the collector.
function asking(query) {
  const asked = new URLSearchParams({ window: isZoomed(query) ? "all" : (WINDOWS.find(([key]) => key === query.get("window")) || WINDOWS[2])[0] });
  for (const name of ["since", "until"]) if (query.get(name)) asked.set(name, new Date(Number(query.get(name))).toISOString());
  for (const name of ["agent", "service", "environment", "user", "metric", "label", "incident", "attribute", "min_seconds", "min_usd"]) for (const value of query.getAll(name).filter(Boolean)) asked.append(name, value);
  if (query.get("q")) asked.set("text", query.get("q"));
  const verdict = query.get("failed"), isOne = query.get("metric") || query.get("label") || query.get("incident");
  if (verdict === "none") asked.set("outcome", "unscored");
  else if (OPEN.includes(verdict)) asked.set("label", verdict);
  else if (verdict) asked.set(isOne ? "success" : "failed", String((verdict === "1") !== Boolean(isOne)));
  if (verdict === "0" && isOne) asked.set("outcome", "scored"); // an assumed score is no pass
  return asked;
}

function pathOf(of, query) {
  const asked = asking(query);
  asked.set("of", of);
  asked.set("limit", "50");
  if (of === "traces" && query.get("order")) asked.set("order", query.get("order"));
  return `/page/index?${asked}`;
}

// The same page with another window.
function windows(query) {
  const [path] = addressed().split("?");
  const to = (key) => {
    const view = new URLSearchParams(query);
    for (const name of ["since", "until"]) view.delete(name);
    view.set("window", key);
    return `${path}?${view}`;
  };
  const now = isZoomed(query) ? "" : query.get("window") || "24h", ends = [Number(query.get("since")), Number(query.get("until")) || Date.now()];
  return el("nav", { class: "pills", "aria-label": "Window" }, isZoomed(query) && el("a", { class: "pill", "aria-current": "true", href: to(query.get("window") || "24h"), title: "Back to the whole window" },
    `${ends.map((ms) => dated(ms, ends[1] - ends[0])).join(" – ")} ✕`), WINDOWS.map(([key, name, short]) => el("a", { class: "pill", href: to(key), title: name || "all stored runs", "aria-current": key === now ? "true" : null }, short)));
}

// The chart, in which people can select a part of the window.
function zoomable(found, query) {
  const marks = [], chart = overTime({ ...found, marks }, (since, until) => {
    const view = new URLSearchParams(query);
    view.set("since", String(since));
    view.set("until", String(until));
    location.hash = `${addressed().split("?")[0]}?${view}`;
  });
  markChanges(chart, marks, query);
  return chart;
}

const PARTS = { metric: "Metric", rulings: "Rulings", prompt: "Prompt", judge: "Judge" };

// Marks in a chart, and lists below it, when metrics, rulings, prompts and judges changed.
async function markChanges(chart, marks, query) {
  const asked = asking(query), held = new Map();
  asked.delete("failed");
  let changes;
  try {
    ({ body: { changes } } = await ask(`/versions?${asked}`));
  } catch (error) {
    if (!error.expected) console.error(error);
    return;
  }
  for (const { at, part, metric: key, before, after } of changes) {
    const how = part === "rulings" ? "" : ` (${before} → ${after})`, line = `${at} ${part}${how}`;
    if (held.has(line)) held.get(line).keys.push(key); else held.set(line, { at, part, how, keys: [key] });
  }
  if (!held.size) return;
  marks.push(...new Set(changes.map(({ at }) => at)));
  chart.append(el("details", { class: "measured muted" }, el("summary", {}, `Measurement changed ${marks.length === 1 ? "once" : `${number(marks.length)} times`}`),
    el("ul", { class: "plain" }, [...held.values()].map(({ at, part, how, keys }) => el("li", {}, `${moment(at).slice(5, 16)} ${PARTS[part]} of ${keys.map(metricName).join(", ")}${how}`)))));
  if (chart.isConnected) redrawn(); // else its first drawing has the marks
}

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
    const on = next === null ? null : el("button", { class: "more", type: "button", hidden: true, onclick: async ({ target }) => { target.disabled = true; draw((await ask(`${path}&cursor=${next}`)).body); } }, "Load more");
    const further = () => { if (on) on.hidden = !more.hidden; };
    further();
    foot.replaceChildren(...[more, on].filter(Boolean));
  };
  draw(body);
  said(`live · ${moment(Date.now(), false)} UTC`);
  return { body, rows: [rows, foot] };
}

// The fields of the filters. `fault`: the collector's error about a value, `{name, text}`, shown at its field.
async function filters(of, query, fault = null) {
  const [path] = addressed().split("?"), [users, versions, models] = await Promise.all(["user", KINDS.version, KINDS.model].map(valuesOf));
  const change = (name) => (event) => {
    const { value } = event.target;
    if (!event.target.reportValidity()) return;
    if (value) query.set(name, value); else query.delete(name);
    changed(event);
  };
  const changed = (event) => {
    history.replaceState(null, "", `${path}${query.size ? `?${query}` : ""}`);
    const held = event.target.id;
    show(true).then(() => { // as if it had not been made anew
      const field = held && document.getElementById(held);
      if (field) { field.focus(); if (/^(text|search)$/.test(field.type)) field.setSelectionRange(field.value.length, field.value.length); }
    });
  };
  const named = (values) => [["", "any"], ...values.map((each) => [each, each])];
  const field = (label, name, known) => {
    const held = query.get(name), options = !held || known.some(([key]) => key === held) ? known : [...known, [held, held]];
    const made = choice(label, name, options, query, change);
    made.querySelector("select").id = `by-${name}`;
    return marked(made, name);
  };
  const marked = (made, name) => {
    if (!fault || name !== fault.name) return made;
    const input = made.querySelector("input, select");
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-describedby", "fault");
    made.append(el("small", { class: "bad fault", id: "fault", role: "alert" }, fault.text));
    return made;
  };
  // A pair `key=value`: of an attribute with its own field, else the first other pair.
  const pairs = query.getAll("attribute"), keys = Object.values(KINDS), [other = ""] = pairs.filter((pair) => !keys.includes(pair.split("=")[0]));
  const pairChanged = (held, made) => (event) => {
    if (!event.target.reportValidity()) return;
    const others = query.getAll("attribute").filter((each) => each !== held);
    query.delete("attribute");
    for (const pair of [...others, made(event.target.value)]) if (pair) query.append("attribute", pair);
    changed(event);
  };
  const kind = (label, name, values) => {
    const of = `${KINDS[name]}=`, held = pairs.find((pair) => pair.startsWith(of)) || "", value = held.slice(of.length);
    if (!values.length && !held) return null;
    const made = choice(label, name, named([...new Set([...values, value])].filter(Boolean)), new URLSearchParams({ [name]: value }), () => pairChanged(held, (picked) => picked && of + picked));
    made.querySelector("select").id = `by-${name}`;
    return made;
  };
  const chosen = [...CHOSEN, "order"].filter((name) => query.get(name)).length, more = ["user", ...CHOSEN.slice(7)];
  const verdicts = query.get("metric") ? [["", "any"], ["1", "failed in it"], ["0", "passed in it"], ["none", "not scored"]] : [["", "any"], ["1", "with findings"], ["0", "without findings"], ["none", "partly not scored"]];
  verdicts.push(...OPEN.map((label) => [label, label]));
  const typed = (text, name, given) => marked(el("label", {}, `${text} `, el("input", { id: `by-${name}`, value: query.get(name) || "", onchange: change(name), ...given })), name);
  return el("details", { class: "filtering", open: !matchMedia("(max-width: 720px)").matches || chosen > 0 }, el("summary", {}, "Filters"), el("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
    field("Agent", "agent", named(whole.agents)), (whole.services.length > 1 || query.get("service")) && field("Service", "service", named(whole.services)), (whole.environments.length > 1 || query.get("environment")) && field("Environment", "environment", named(whole.environments)), kind("Version", "version", versions), kind("Model", "model", models),
    field("Metric", "metric", [["", "any"], ...whole.metrics.map((key) => [key, metricName(key)])]),
    of === "traces" && field("Order", "order", [["worst", "worst first"], ["newest", "newest first"]]),
    el("label", {}, "Search ", el("input", { type: "search", id: "search", size: 18, value: query.get("q") || "", placeholder: "question, answer (/)", oninput: later(change("q")) })),
    field("Verdict", "failed", verdicts),
    el("details", { class: "more-filters", open: more.some((name) => query.get(name)) }, el("summary", {}, "More"), el("span", {},
      typed("User", "user", { placeholder: "ID", size: 16, list: "users" }), el("datalist", { id: "users" }, users.map((value) => el("option", { value }))), typed("Label", "label", { placeholder: "loop, false_success", size: 16 }), typed("Incident", "incident", { placeholder: "ID", size: 16 }), typed("Attribute", "attribute", { value: other, placeholder: "tenant=acme", pattern: "[^=\\s]+=.*", title: "key=value", onchange: pairChanged(other, (picked) => picked) }),
      typed("Minimum duration (s)", "min_seconds", { type: "number", min: 0, step: "any" }), typed("Minimum cost ($)", "min_usd", { type: "number", min: 0, step: "any" }))), COLUMNS[of] && columns(of), views(), exporting(of, query), el("a", { class: "ahead", href: comparisonHref(query) }, "Compare")));
}

// The columns of a list. This browser keeps only the differences from the default.
function isColumn(list, name) {
  return kept("columns", {})[`${list}.${name}`] ?? COLUMNS[list][name][1];
}

function columns(list) {
  return el("details", { class: "more-filters columns" }, el("summary", {}, "Columns"), el("span", {}, Object.entries(COLUMNS[list]).map(([name, [text]]) =>
    el("label", {}, el("input", { type: "checkbox", id: `column-${name}`, checked: isColumn(list, name), onchange: async ({ target }) => {
      keep("columns", { ...kept("columns", {}), [`${list}.${name}`]: target.checked });
      await show(true);
      document.querySelector(".columns").open = true;
      document.getElementById(target.id).focus();
    } }), ` ${text}`))));
}

// Exports of the view's rows, as files or with a command.
function exporting(of, query) {
  const rows = { sessions: "sessions", traces: "traces", failures: "incidents" }[of], asked = asking(query);
  if (!rows) return null;
  const file = (format) => {
    const to = new URLSearchParams([["of", rows], ["format", format], ...asked]);
    return el("a", { href: `${location.origin}${location.pathname}api/v1/export?${to}`, download: "" }, { json: "JSON lines", csv: "CSV", otlp: "Spans (OTLP)" }[format]);
  };
  const span = isZoomed(query) ? `${asked.get("since") || ""}..${asked.get("until") || ""}` : asked.get("window") === "all" ? "" : `${asked.get("window")}..`;
  const where = [...[...asked].filter(([name]) => !["window", "since", "until"].includes(name)), ...(span ? [["time", span]] : [])].map(([name, value]) => `${name}=${value}`).join(",");
  return el("details", { class: "more-filters exporting" }, el("summary", {}, "Export"), el("span", {}, (rows === "incidents" ? ["json", "csv"] : ["json", "csv", "otlp"]).map(file)),
    rows === "incidents" ? null : el("p", { class: "muted" }, "As a case file, for your test suite:"), rows === "incidents" ? null : copied(`pandaeval export --url ${location.origin} --of ${rows}${where ? ` --where ${shellWord(where)}` : ""} --format case --output cases.yaml`, true));
}

// Saved views of this browser by name. A view is an address.
function views() {
  const held = kept("views", []), bar = el("span", { class: "views-kept" });
  const drawn = (list) => {
    keep("views", list);
    bar.replaceChildren(...list.map((each) => el("span", { class: "pill", "aria-current": each.address === addressed() ? "true" : null }, el("a", { href: each.address }, each.name),
      el("button", { class: "link", type: "button", "aria-label": `Delete view ${each.name}`, onclick: () => drawn(list.filter((other) => other !== each)) }, "✕"))),
    el("details", { class: "keeping" }, el("summary", {}, "Save this view"), el("input", { type: "text", "aria-label": "Name of the view", placeholder: "name, then Enter", maxlength: 60, onkeydown: (event) => {
      const name = event.target.value.trim();
      if (event.key === "Enter" && name) drawn([...list.filter((other) => other.name !== name), { name, address: addressed() }]);
    } })));
  };
  drawn(Array.isArray(held) ? held.filter((each) => each && typeof each.name === "string" && String(each.address).startsWith("#/")) : []);
  return bar;
}

async function tracesPage(query) {
  const { body, rows } = await listing("traces", query);
  const matching = await matches("traces", query);
  return [el("div", { class: "top" }, el("h1", {}, "Traces"), el("span", { class: "muted", role: "status" }, matching ? `${matching}${windowName(query) && ` in the ${windowName(query)}`}` : counted(body, query)), windows(query)), raised(), await filters("traces", query), body.index.order.length ? rows : nothing(query)];
}

async function sessionsPage(query) {
  const { body, rows } = await listing("sessions", query);
  return [el("div", { class: "top" }, el("h1", {}, "Sessions"), el("span", { class: "muted", role: "status" }, counted(body, query)), windows(query)), await filters("sessions", query), body.index.order.length ? rows : nothing(query)];
}

// Number of matching rows; of traces, among all traces. The list itself cannot count matches of a text or a result.
async function matches(of, query) {
  const read = CHOSEN.slice(4);
  if (!read.some((name) => query.get(name) && !(name === "failed" && ["0", "1"].includes(query.get(name))))) return "";
  const all = new URLSearchParams(query);
  for (const name of read) all.delete(name);
  const most = 200, ask_ = async (view, limit) => (await ask(`${pathOf(of, view).replace(/limit=\d+/, `limit=${limit}`)}`)).body;
  const { index: { order }, next } = await ask_(query, most), total = of === "sessions" ? null : (await ask_(all, 1)).traces;
  const rows = of === "sessions" ? manyUnits(order) : many(order.length, "trace");
  return `${next === null ? "" : "over "}${total === null ? rows : `${number(order.length)} of ${many(total, "trace")}`} ${order.length === 1 ? "matches" : "match"}`;
}

// The page's word for a listed run.
function noun() {
  return addressed().startsWith("#/traces") ? "trace" : "run";
}

function counted(body, query) {
  const name = windowName(query);
  const of = name ? ` of the ${name}` : "";
  if (body.traces !== null) return `${many(body.traces, noun())}${of}, ${number(body.failed)} with findings`;
  const here = body.index.order.length;
  return here ? `${body.next === null ? "" : "more than "}${many(here, addressed().startsWith("#/traces") ? "trace" : "row")}${of}` : `No rows${of} match`;
}
