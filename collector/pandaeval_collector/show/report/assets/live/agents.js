// Agents: how often they ran and failed, over time; what a run took; and which metrics failed for whom.

// Of an agent nothing of which was scored nobody knows how often it fails: that is grey, not 0 %.
function isScored(agent) {
  return agent.failed > 0 || whole.rates.some((rate) => rate.agent === agent.agent && rate.scored);
}

function agentRow(agent, query) {
  const to = new URLSearchParams(query);
  to.set("agent", agent.agent);
  const share = agent.failed / agent.runs;
  return el("a", { class: "agent-row", href: `#/?${to}` },
    el("span", { class: "name" }, agent.agent || "(no name)", el("small", {}, many(agent.runs, "run"))),
    spark(agent.spark, `runs of ${agent.agent} over time`, agent.bad),
    isScored(agent) ? el("span", { class: "times" }, el("b", { class: agent.failed ? "bad" : "" }, percent(share)), el("small", {}, "failed"))
      : el("span", { class: "times muted" }, "not scored"),
    el("span", { class: "meter", "aria-hidden": "true" }, isScored(agent) ? el("i", { class: `heat-${heat(1 - share)}`, "--share": `${100 * (1 - share)}%` }) : null));
}

async function agentsPage(query) {
  watched = null;
  said("");
  const found = await failing(query, true);
  whole = (await ask("/overview")).body;
  const head = ["agent", "runs", "failed", "over time", "latency (median)", "95 %", "tokens", "cost"];
  const row = (agent) => {
    const to = new URLSearchParams(query);
    to.set("agent", agent.agent);
    const share = agent.failed / agent.runs;
    return el("tr", {}, el("th", { scope: "row" }, el("a", { href: `#/?${to}` }, agent.agent || "(no name)")), el("td", {}, number(agent.runs)),
      isScored(agent) ? el("td", {}, el("span", { class: `cell heat-${heat(1 - share)}` }, percent(share))) : el("td", { class: "muted" }, "not scored"), el("td", {}, spark(agent.spark, `runs of ${agent.agent} over time`, agent.bad)),
      [agent.us === null ? "–" : duration(agent.us), agent.us95 === null ? "–" : duration(agent.us95), agent.tokens ? compact(agent.tokens) : "–", agent.usd === null ? "–" : dollars(agent.usd)].map((text) => el("td", {}, text)));
  };
  return [el("div", { class: "top" }, el("h1", {}, "Agents"), el("span", { class: "muted", role: "status" }, many(found.agents.length, "agent")), windows(query)), filters("agents", query),
    el("div", { class: "scroll card", tabindex: "0" }, el("table", { class: "rates" }, el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, found.agents.map(row)))),
    el("p", { class: "muted" }, "Latency, tokens and cost by run, of the newest 5,000. Cost as instrumentations tell it (operation.cost, gen_ai.usage.cost, llm.cost.total)."),
    whole.rates.length ? [el("h2", {}, "Failed, by agent and metric ", el("small", {}, "since the store began; a number leads to the traces of the window")), rates(query)] : null];
}

// A row for each agent, a column for each metric: the share of its scores that failed.
function rates(query) {
  const wanted = whole.rates.filter((rate) => (!query.get("agent") || rate.agent === query.get("agent")) && (!query.get("service") || rate.service === query.get("service")));
  const columns = new Map(), lines = new Map();
  for (const rate of wanted) {
    const key = `${rate.level}.${rate.metric}`;
    if (!lines.has(rate.agent)) lines.set(rate.agent, new Map());
    for (const [held, name] of [[columns, key], [lines.get(rate.agent), key]]) {
      const cell = held.get(name) || { scored: 0, failed: 0, assumed: 0, unscored: 0 };
      cell.scored += rate.scored;
      cell.failed += rate.failed;
      cell.assumed += rate.assumed;
      cell.unscored += sum(Object.values(rate.unscored));
      held.set(name, cell);
    }
  }
  const keys = [...columns].filter(([, cell]) => cell.scored).sort(([, a], [, b]) => b.failed - a.failed).map(([key]) => key);
  const total = (cells) => sum([...cells.values()].map((cell) => cell.failed));
  const agents = [...lines].sort(([, a], [, b]) => total(b) - total(a)).slice(0, 30);
  return el("div", { class: "scroll card", tabindex: "0" }, el("table", { class: "rates" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "agent"), keys.map((key) => el("th", { scope: "col", title: `${key}: ${metric(key).question}` }, metricName(key))))),
    el("tbody", {}, agents.map(([agent, cells]) => el("tr", {}, el("th", { scope: "row" }, agent || "(no name)"), keys.map((key) => rateCell(agent, key, cells.get(key), query)))))),
    lines.size > agents.length ? el("p", { class: "muted" }, `${many(lines.size - agents.length, "more agent")} with fewer failures`) : null);
}

function rateCell(agent, key, cell, query) {
  if (!cell || !(cell.scored + cell.assumed + cell.unscored)) return el("td", { class: "muted" }, "");
  const only = metric(key).kind === "llm" && !whole.judge; // what code finds has a score, what is in order has none
  const told = `${metricName(key)}, ${agent || "(no name)"}: ${number(cell.failed)} of ${many(cell.scored, "score")} failed, ${number(cell.assumed)} assumed, ${number(cell.unscored)} not scored`;
  if (!cell.scored) return el("td", { class: "muted", title: told }, cell.unscored ? "not scored" : "assumed");
  if (!cell.failed) return el("td", { class: "muted", title: told }, only ? "0" : "0 %");
  const to = new URLSearchParams({ metric: key, failed: "1", ...(agent ? { agent } : {}), ...(query.get("window") ? { window: query.get("window") } : {}) });
  return el("td", { title: told }, el("a", { class: `cell heat-${only ? 1 : heat(1 - cell.failed / cell.scored)}`, href: metric(key).level === "session" ? `#/sessions?${to}` : `#/traces?${to}` },
    only ? `${number(cell.failed)} found` : percent(cell.failed / cell.scored), el("small", {}, only ? "" : ` ${number(cell.failed)} of ${number(cell.scored)}`)));
}
