// The first page: what is worst now, its root causes, then how often each metric fails for whom, what has no score, and the judge.

async function overview(query) {
  const { body, rows } = await listing("sessions", query);
  whole = (await ask("/overview")).body;
  const failures = await groups(query);
  const blind = isBlind(body);
  return [
    el("h1", {}, headline(body, query)),
    raised(),
    body.index.unasked && !whole.judge ? caveat(body.index.unasked) : null,
    filters("sessions", query),
    blind ? el("div", { class: "cards" }, unscored()) : null,
    body.index.order.length ? [el("h2", {}, "Worst first"), rows] : nothing(query),
    causes(failures, query),
    whole.rates.length ? [el("h2", {}, "Failed, by agent and metric"), el("p", { class: "muted" }, "Since the store began. A number leads to the traces of the window."), rates(query)] : null,
    el("div", { class: "cards two" }, blind ? null : unscored(), judging(body.index.unasked)),
  ];
}

// What components of the collector raised: results, readings or deliveries are missing for it.
function raised() {
  const errors = whole.component_errors;
  return errors.length ? el("div", { class: "notice raised", role: "alert" }, el("b", {}, "Components raised errors, and what they should have given is missing. "),
    errors.map(({ kind, name, count }) => `${kind} ${name} × ${number(count)}`).join(", "), el("span", { class: "muted" }, " since the collector began; its log has the traceback of the first of each.")) : null;
}

// One line, and the rest on demand: what is worst is to be seen on a phone, too.
function caveat(text) {
  const end = text.indexOf(". ") + 1 || text.length;
  return el("details", { class: "lead unasked" }, el("summary", {}, text.slice(0, end)), text.slice(end));
}

// Whether nothing in the window has a score. What has none stands last, so the first row tells.
function isBlind({ index }) {
  const [first] = index.order;
  return first !== undefined && unitState(unitOf(index, first)) === "none";
}

function headline(body, query) {
  const [key, name] = windowOf(query);
  const when = key === "all" ? "" : ` in the ${name}`;
  const filtered = ["agent", "service", "metric", "q", "failed"].some((each) => query.get(each));
  const what = filtered ? "matching trace" : "agent trace";
  if (!body.index.order.length) return `No ${what}s${when}`;
  if (isBlind(body)) return `Nothing could be scored${when}`;
  if (body.traces === null) return `What matches${when}`;
  if (query.get("failed")) return `${many(body.traces, "matching trace")}${when}`;
  return body.failed ? `${number(body.failed)} of ${many(body.traces, what)} failed${when}` : `Nothing failed in ${many(body.traces, what)}${when}`;
}

function nothing(query) {
  const wider = new URLSearchParams(query);
  wider.set("window", "all");
  return el("p", { class: "notice" }, whole.rates.length ? ["Nothing is listed here. ", el("a", { href: `#/?${wider}` }, "Look at all that is kept"), " · ", el("a", { href: "#/" }, "Without filters")]
    : `Nothing was scored yet. Send OTLP/HTTP to ${location.origin}, or OTLP/gRPC to the port of server.grpc (4327 unless set): docs/instrument.md says how. A trace appears some seconds after its last span; it has to hold the work of an agent. What arrived is counted as pandaeval_spans_total in /metrics, and the log says what is wrong with it.`);
}

// A row for each agent, a column for each metric: the share of its scores that failed.
function rates(query) {
  const wanted = whole.rates.filter((rate) => (!query.get("agent") || rate.agent === query.get("agent")) && (!query.get("service") || rate.service === query.get("service")));
  const columns = new Map(), lines = new Map();
  for (const rate of wanted) {
    const key = `${rate.level}.${rate.metric}`;
    if (!lines.has(rate.agent)) lines.set(rate.agent, new Map());
    for (const [held, name] of [[columns, key], [lines.get(rate.agent), key]]) {
      const cell = held.get(name) || { scored: 0, failed: 0, judged: 0, assumed: 0, unscored: 0 };
      cell.scored += rate.scored;
      cell.failed += rate.failed;
      cell.judged += rate.passed + rate.failed;
      cell.assumed += rate.assumed;
      cell.unscored += sum(Object.values(rate.unscored));
      held.set(name, cell);
    }
  }
  const keys = [...columns].filter(([, cell]) => cell.scored).sort(([, a], [, b]) => b.failed - a.failed).map(([key]) => key);
  const total = (cells) => sum([...cells.values()].map((cell) => cell.failed));
  const agents = [...lines].sort(([, a], [, b]) => total(b) - total(a)).slice(0, 30);
  return el("div", { class: "scroll card" }, el("table", { class: "rates" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "agent"), keys.map((key) => el("th", { scope: "col", title: metric(key).question }, metricName(key))))),
    el("tbody", {}, agents.map(([agent, cells]) => el("tr", {}, el("th", { scope: "row" }, agent || "(no name)"), keys.map((key) => rateCell(agent, key, cells.get(key), query)))))),
    lines.size > agents.length ? el("p", { class: "muted" }, `${many(lines.size - agents.length, "more agent")} with fewer failures`) : null);
}

function rateCell(agent, key, cell, query) {
  if (!cell || !(cell.scored + cell.assumed + cell.unscored)) return el("td", { class: "muted" }, "");
  const only = metric(key).kind === "llm" && !whole.judge; // what code finds has a score, what is in order has none
  const told = `${metricName(key)}, ${agent || "(no name)"}: ${number(cell.failed)} of ${many(cell.scored, "score")} failed, ${number(cell.assumed)} assumed, ${number(cell.unscored)} not scored`;
  if (!cell.scored) return el("td", { class: "muted", title: told }, cell.unscored ? "not scored" : "assumed");
  if (!cell.failed) return el("td", { class: "muted", title: told }, `0 of ${number(cell.scored)}`);
  const to = new URLSearchParams({ metric: key, failed: "1", ...(agent ? { agent } : {}), ...(query.get("window") ? { window: query.get("window") } : {}) });
  return el("td", { class: "bad", title: told, "--heat": `${only ? 12 : Math.round(12 + (60 * cell.failed) / cell.scored)}%` },
    el("a", { href: metric(key).level === "session" ? `#/?${to}` : `#/traces?${to}` }, el("b", {}, number(cell.failed)), only ? " found" : ` of ${number(cell.scored)}`));
}

function unscored() {
  return el("section", { class: "card" }, el("h2", {}, "What could not be scored, since the store began"),
    whole.unscored.length ? whole.unscored.slice(0, 6).map((entry) => el("div", { class: "why" },
      el("div", {}, el("b", {}, entry.why.replaceAll("_", " ")), ` × ${number(entry.count)} `,
        el("span", { class: "muted" }, Object.entries(entry.metrics).map(([key, count]) => `${metricName(key)} ${number(count)}`).join(", "))),
      entry.cure ? el("div", { class: "cure" }, entry.cure) : null)) : el("p", { class: "muted" }, whole.rates.length ? "Everything that was asked has a score." : "Nothing was asked yet."));
}

function judging(unasked) {
  const { jobs, judge: model, spent_usd: spent, daily_usd: most } = whole;
  const waiting = (jobs.due || 0) + (jobs.leased || 0);
  const ended = Object.entries(jobs).filter(([state, count]) => count && !["due", "leased"].includes(state)).map(([state, count]) => `${number(count)} ${state}`);
  return el("section", { class: "card" }, el("h2", {}, "Judge"), model ? [
    el("p", { class: "big" }, number(waiting), el("span", { class: "muted" }, ` ${waiting === 1 ? "question waits" : "questions wait"} for ${model}`)),
    ended.length ? el("p", { class: "muted" }, ended.join(" · ")) : null,
    el("p", {}, el("b", {}, `$${spent.toFixed(2)}`), most === null ? " spent today (UTC); no limit is set (judge.daily_usd)" : ` of $${most.toFixed(2)} spent today (UTC)`),
    unasked ? el("p", { class: "muted" }, unasked) : null]
    : el("p", { class: "muted" }, "No model is configured (judge.model): task success is not judged."));
}
