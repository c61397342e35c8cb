// The data of the live page, from its collector. Addresses: PAGES with the filters, #/session/<id>?step=call%20<n>,
// #/trace/<id>?span=<id>…, and #/compare?a=<id>&b=<id>.

const PAGES = { "": overview, failures: failuresPage, sessions: sessionsPage, traces: tracesPage, agents: agentsPage, comparison: comparisonPage, runs: runsPage, questions: questionsPage, trust: trustPage };
const NAVIGATION = Object.keys(PAGES);
const TITLES = { failures: "Incidents", runs: "Evaluation runs", comparison: "Compare", questions: "Questions for you" };

const FILTERED = [overview, failuresPage, sessionsPage, tracesPage, agentsPage]; // pages with the fields of the filters
const FIELDS = { text: "q" }; // names of parameters that have another name in an address

const answers = new Map(); // by path: the last answer and its tag
const MOST_ANSWERS = 30;
let whole = null; // names, settings and pending work
let lastList = "#/";

// An answer of the API; `changed` is false if the answer is the same as before.
async function ask(path) {
  const known = answers.get(path);
  // Not the document's own address: fetch rejects an address with a name and a password.
  const answer = await fetch(`${location.origin}${location.pathname}api/v1${path}`, { headers: known && known.tag ? { "if-none-match": known.tag } : {} });
  if (answer.status === 304 && known) return { body: known.body, changed: false };
  if (!answer.ok) throw await refusal(answer);
  const body = await answer.json();
  if (answers.size > MOST_ANSWERS) answers.clear();
  answers.set(path, { tag: answer.headers.get("etag"), body });
  return { body, changed: true };
}

async function refusal(answer) {
  let said = `the collector answered with status ${answer.status}`;
  try {
    said = (await answer.json()).detail || said;
  } catch {
    // no JSON: the status says it
  }
  const error = new Error(said);
  Object.assign(error, { expected: true, status: answer.status });
  const [place, name] = (answer.status === 422 && /^(\w+)(?:\.\d+)?: /.exec(said)) || [""];
  if (place) error.fault = { name: FIELDS[name] || name, text: said.slice(place.length) };
  return error;
}

async function open() {
  try {
    whole = (await ask("/overview")).body;
  } catch (error) {
    throw new Error(`the collector does not answer: ${error.message}; check that it is running`);
  }
  watch();
}

function heading() {
  return { title: "pandaeval", source: "", made: "" };
}

async function pageOf(kind, at, query) {
  warned();
  const one = { __proto__: null, trace: () => traceOf(at, query), session: () => sessionOf(at, query), compare: () => comparePage(query) }[kind];
  if (one) {
    watched = null;
    said("");
    return one();
  }
  if (at || !Object.hasOwn(PAGES, kind)) return noPage();
  lastList = addressed();
  const page = PAGES[kind];
  try {
    return await page(query);
  } catch (error) {
    if (!error.fault || !FILTERED.includes(page)) throw error;
    watched = null;
    said("");
    return [el("div", { class: "top" }, el("h1", {}, TITLES[kind] || humane(kind || "overview")), windows(query)), await filters(kind, query, error.fault), el("p", { class: "notice" }, "Change the marked filter, or ", el("a", { href: `#/${kind}` }, "clear all filters"), ".")];
  }
}

async function traceOf(id, query) {
  const { body } = await ask(`/page/traces/${encodeURIComponent(id.toLowerCase())}`);
  const [trace] = linked(body.index).traces;
  trace.found = body.detail;
  return tracePage(trace, { spans: query.getAll("span"), metric: query.get("finding"), step: query.get("step") });
}

// `step` of the query: a call that a verdict names. The page opens the trace of this call instead of the session.
async function sessionOf(id, query) {
  const { body } = await ask(`/page/session?id=${encodeURIComponent(decodeURIComponent(id))}`);
  const [session] = linked(body.index).sessions, step = query.get("step");
  const verdict = step && session.rows.length && session.results.find((result) => isVerdict(result.metric));
  const href = verdict && stepHref(session, verdict, step);
  if (href) location.replace(href);
  return sessionPage(session);
}

// Messages of at most 30 traces of a session, from a position on.
async function spokenIn(session, start) {
  return (await ask(`/page/conversation?id=${session.href}&start=${start}`)).body;
}

async function details(trace) {
  return trace.found;
}

function traceHref(id) {
  return `#/trace/${id}`;
}

function sessionHref(session) {
  return `#/session/${session.href}`;
}

function home() {
  return lastList;
}

function missingSpans() {
  return "The spans of this trace are no longer stored, but its scores are. The settings store.retention, store.keep_content and store.max_bytes decide this.";
}

// Links to other programs (ui.links).
function beyond(trace) {
  return away({ trace_id: trace.id, session_id: trace.of ? trace.of.id : "", agent: trace.agent || "", service: trace.service || "",
    start_ms: String(trace.at), end_ms: String(trace.at + Math.ceil(trace.us / 1000)) });
}

function away(held) {
  const links = Object.entries(whole.links).map(([name, template]) =>
    el("a", { href: template.replace(/\{(\w+)\}/g, (as, key) => (key in held ? encodeURIComponent(held[key]) : as)), target: "_blank", rel: "noreferrer noopener" }, `${name} ↗`));
  return links.length ? el("span", { class: "beyond" }, links) : null;
}

function relative() {
  return true;
}
