// The data of a report, in the file itself: an index, and blocks of traces that are unpacked on demand.
// Addresses: #/ , #/traces?… , #/s/<session> , #/t/<trace>, by position.

const NAVIGATION = ["", "traces"];
const TITLES = {};
const blocks = new Map(), positions = new Map();

async function unpack(id) {
  const packed = document.getElementById(id).textContent;
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

async function open() {
  try {
    store.index = linked(await unpack("index"));
  } catch (error) {
    throw new Error(`The report cannot be read: ${error}. You need a browser from 2023 or later, and the complete file.`);
  }
  store.index.traces.forEach((trace, at) => positions.set(trace.id, at));
  addEventListener("beforeprint", () => { document.documentElement.dataset.print = ""; redrawn(); });
  addEventListener("afterprint", () => { delete document.documentElement.dataset.print; redrawn(); });
}

function heading() {
  const { about: from } = store.index;
  return { title: `${sources()} – pandaeval report`, source: sources(),
    made: `made ${moment(Date.parse(from.made_at))} UTC${from.version ? `, pandaeval-otel ${from.version}` : ""}` };
}

function sources() {
  const names = store.index.about.sources;
  return names.slice(0, 3).join(", ") + (names.length > 3 ? ` and ${number(names.length - 3)} more` : "");
}

async function pageOf(kind, at, query) {
  const { sessions, traces } = store.index;
  if (kind === "s" && sessions[at]) return sessionPage(sessions[at]);
  if (kind === "t" && traces[at]) return tracePage(traces[at], { spans: query.getAll("span"), step: query.get("step") });
  if (at || !NAVIGATION.includes(kind)) return noPage();
  return kind ? tracesPage(query) : overview();
}

async function details(trace) {
  if (trace.block === undefined) return null;
  if (!blocks.has(trace.block)) {
    if (blocks.size > 40) blocks.clear();
    blocks.set(trace.block, unpack(`block-${trace.block}`));
  }
  return (await blocks.get(trace.block))[trace.at_];
}

async function spokenIn(session, start) {
  const rows = session.rows.slice(start, start + PART);
  const traces = await Promise.all(rows.map(async (row) => ({ ...(await details(row)), id: row.id })));
  return { traces, next: start + PART < session.rows.length ? start + PART : null };
}

// The address of a trace; null if this report does not contain it.
function traceHref(id) {
  return positions.has(id) ? `#/t/${positions.get(id)}` : null;
}

function sessionHref(session) {
  return `#/s/${session.at_}`;
}

function home() {
  return "#/";
}

function missingSpans() {
  return "The spans of this trace are no longer stored (store.retention, store.max_bytes, store.keep_content), or the report is too large. A large report contains only the spans of its worst traces.";
}

function beyond() {
  return null; // a file leads nowhere but into itself
}

function beside() {
  return null; // nobody listens to what is said of a score
}

function tickable(row) {
  return row;
}

function again() {
  return null;
}

function asCase() {
  return null; // its command asks a collector
}

function deletion() {
  return null;
}

function isColumn(list, name) {
  return COLUMNS[list][name][1];
}

function relative() {
  return false; // a file is read whenever
}
