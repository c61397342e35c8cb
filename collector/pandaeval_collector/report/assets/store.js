// The data: an index that is there at once, and blocks of traces that are unpacked when one of them is looked at.

const store = { index: null, blocks: new Map(), traces: new Map() };

async function unpack(id) {
  const packed = document.getElementById(id).textContent;
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

async function open() {
  const index = (store.index = await unpack("index"));
  index.traces.forEach((trace, at) => {
    trace.at_ = at;
    store.traces.set(trace.id, at);
    judge(trace, trace.results);
  });
  index.sessions.forEach((session, at) => {
    session.at_ = at;
    session.rows = session.traces.map((number) => index.traces[number]);
    judge(session, session.results);
  });
}

// The worst result of a trace or session: what failed before what passed, then by the signal.
function judge(unit, results) {
  unit.failed = results.filter((result) => result.success === false);
  const scored = results.filter((result) => result.signal !== undefined);
  const order = (a, b) => (a.success !== false) - (b.success !== false) || a.signal - b.signal;
  unit.worst = scored.sort(order)[0] || null;
  unit.state = unit.failed.length || unit.error !== undefined ? "bad" : unit.worst ? (unit.worst.says ? "quiet" : "good") : "none";
}

async function details(trace) {
  if (trace.block === undefined) return null;
  if (!store.blocks.has(trace.block)) {
    if (store.blocks.size > 40) store.blocks.clear();
    store.blocks.set(trace.block, unpack(`block-${trace.block}`));
  }
  return (await store.blocks.get(trace.block))[trace.at_];
}

function metric(key) {
  return store.index.metrics[key] || { name: key, level: "", question: "", needs: "", models: [] };
}

// The bare name; with the level where two levels have it.
function metricName(key) {
  const { name, level } = metric(key);
  const twice = Object.entries(store.index.metrics).some(([other, each]) => other !== key && each.name === name && each.asked);
  return twice && level !== "trace" ? `${level} ${name}` : name;
}

// Everything of a session or of a trace that belongs to none.
function unitOf([kind, at]) {
  return kind === "s"
    ? { session: store.index.sessions[at], rows: store.index.sessions[at].rows, href: `#/s/${at}` }
    : { session: null, rows: [store.index.traces[at]], href: `#/t/${at}` };
}

function unitState(unit) {
  if (unit.rows.some((row) => row.state === "bad") || (unit.session && unit.session.state === "bad")) return "bad";
  if (unit.session && unit.session.results.some((result) => result.says)) return "quiet";
  return unit.rows.some((row) => row.state === "good") ? "good" : "none";
}

// The result that says most about what is wrong in a unit, and the trace that it is about. What was found in a trace
// says more than a sum over the session.
function worstOf(unit) {
  let found = null;
  const better = (a, b) => !b || (a.success === false) > (b.result.success === false)
    || ((a.success === false) === (b.result.success === false) && a.signal < b.result.signal);
  for (const row of unit.rows) if (row.worst && better(row.worst, found)) found = { result: row.worst, row };
  const whole = unit.session && unit.session.worst;
  if (whole && whole.success === false && !(found && found.result.success === false)) return { result: whole, row: null };
  return found || (whole ? { result: whole, row: null } : null);
}
