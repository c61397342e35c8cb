// Agents: runs and failures over time, cost of a run, and failures by agent and metric.

// The failure rate of an agent without scores is unknown, so it is grey, not 0 %.
function isScored(agent) {
  return agent.failed > 0 || rated.rates.some((rate) => rate.agent === agent.agent && rate.scored);
}

function agentRow(agent, query) {
  const to = new URLSearchParams(query);
  to.set("agent", agent.agent);
  const share = agent.failed / agent.runs;
  return el("a", { class: "agent-row", href: `#/?${to}` },
    el("span", { class: "name" }, agent.agent || "(no name)", el("small", {}, many(agent.runs, "run"))),
    spark(agent.spark, `runs of ${agent.agent} over time`, agent.bad),
    isScored(agent) ? el("span", { class: "times" }, el("b", { class: agent.failed ? "bad" : "" }, percent(share)), el("small", {}, "with findings"))
      : el("span", { class: "times muted" }, "not scored"),
    el("span", { class: "meter", "aria-hidden": "true" }, isScored(agent) ? el("i", { "--share": `${100 * share}%` }) : null));
}

// Share of failures as a colour, from none to full red.
function failedShare(failed, all, ...more) {
  return el("span", { class: `cell ${failed ? "" : "none"}`, "--share": `${Math.round(100 * failed / all)}%` }, percent(failed / all), more);
}

async function agentsPage(query) {
  watched = null;
  said("");
  const found = await failing(query, { measured: true, limit: 1 });
  whole = (await ask("/overview")).body;
  rated = await ratesOf(query);
  for (const { key, ...known } of (await ask("/metrics")).body) store.metrics[key] = { scored_by: {}, models: [], ...known, ...store.metrics[key] };
  const head = ["agent", "runs", "handled correctly", "with findings", "over time", "latency (median)", "latency (95th percentile)", "tokens (median)", "cost (median)"];
  const row = (agent) => {
    const to = new URLSearchParams(query);
    to.set("agent", agent.agent);
    const share = agent.failed / agent.runs, runs = (failed, text) => {
      const of = new URLSearchParams(to);
      if (failed) of.set("failed", failed);
      return agent.agent ? el("a", { href: `#/traces?${of}` }, text) : text;
    };
    return el("tr", {}, el("th", { scope: "row" }, el("a", { href: `#/?${to}` }, agent.agent || "(no name)")), el("td", {}, runs("", number(agent.runs))),
      el("td", {}, verdictsOf(query, agent.agent)), isScored(agent) ? el("td", {}, runs("1", failedShare(agent.failed, agent.runs, el("small", {}, ` ${number(agent.failed)} of ${number(agent.runs)}`)))) : el("td", { class: "muted" }, "not scored"), el("td", {}, spark(agent.spark, `runs of ${agent.agent} over time`, agent.bad)),
      [agent.us === null ? "–" : duration(agent.us), agent.us95 === null ? "–" : duration(agent.us95), agent.tokens ? compact(agent.tokens) : "–", agent.usd === null ? "–" : dollars(agent.usd)].map((text) => el("td", {}, text)));
  };
  return [el("div", { class: "top" }, el("h1", {}, "Agents"), el("span", { class: "muted", role: "status" }, many(found.agents.length, "agent")), windows(query)), await filters("agents", query),
    el("div", { class: "scroll card", tabindex: "0" }, el("table", { class: "rates" }, el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, found.agents.map(row)))),
    el("p", { class: "muted" }, "Latency, tokens and cost are per run, from the newest 5,000 runs. The cost comes from the spans (operation.cost, gen_ai.usage.cost, llm.cost.total), otherwise from list prices."),
    await costs(query),
    rated.rates.length ? [el("h2", {}, "Failed scores, by agent and metric ", el("small", {}, windowName(query))), rates(query)] : null];
}

// A row for each agent, a column for each metric: the failed share of its scores, without unclear and disputed scores.
function rates(query) {
  const columns = new Map(), lines = new Map();
  for (const rate of rated.rates) {
    const key = `${rate.level}.${rate.metric}`, cell = { ...rate, unscored: sum(Object.values(rate.unscored)) };
    if (isExplaining(key) || (rate.agent !== null && query.get("agent") && rate.agent !== query.get("agent"))) continue;
    if (rate.agent !== null && !lines.has(rate.agent)) lines.set(rate.agent, new Map());
    (rate.agent === null ? columns : lines.get(rate.agent)).set(key, cell);
  }
  const keys = [...columns].filter(([, cell]) => cell.scored).sort(([, a], [, b]) => b.failed - a.failed).map(([key]) => key);
  const total = (cells) => sum([...cells.values()].map((cell) => cell.failed));
  const agents = [...lines].sort(([, a], [, b]) => total(b) - total(a)).slice(0, 30);
  return el("div", { class: "scroll card", tabindex: "0" }, el("table", { class: "rates" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "agent"), keys.map((key) => el("th", { scope: "col", title: `${key}: ${metric(key).question}` }, metricName(key))))),
    el("tbody", {}, agents.map(([agent, cells]) => el("tr", {}, el("th", { scope: "row" }, agent || "(no name)"), keys.map((key) => rateCell(agent, key, cells.get(key), query)))))),
    lines.size > agents.length ? el("p", { class: "muted" }, `${many(lines.size - agents.length, "more agent")} without more failures than these`) : null);
}

function rateCell(agent, key, cell, query) {
  if (!cell || !(cell.scored + cell.assumed + cell.unscored)) return el("td", { class: "muted" }, "");
  const only = metric(key).kind === "llm" && !whole.judge; // what code finds has a score, what is in order has none
  const open = cell.unclear + cell.disputed, counted = cell.scored - open;
  const told = `${metricName(key)}, ${agent || "(no name)"}: ${open ? decided(cell) : `${number(cell.failed)} of ${many(cell.scored, "score")} failed`}, ${number(cell.assumed)} assumed, ${number(cell.unscored)} not scored`;
  if (!cell.scored) return el("td", { class: "muted", title: told }, cell.unscored ? "not scored" : "assumed");
  const of = new URLSearchParams(query);
  of.set("agent", agent);
  const also = open ? el("small", {}, " ", openLinks(cell, key, of)) : null;
  if (!cell.failed) return el("td", { class: "muted", title: told }, only ? "0" : counted ? "0 %" : "", also);
  const share = only ? el("span", { class: "cell", "--share": "0%" }, `${number(cell.failed)} found`) : failedShare(cell.failed, counted, el("small", {}, ` ${number(cell.failed)} of ${number(counted)}`));
  return el("td", { title: told }, agent ? el("a", { href: resultsOf(key, "1", of) }, share) : share, also);
}

// Cost of runs and verdicts within the window, by agent, user, session or day.
async function costs(query) {
  const by = ["user", "session", "day"].includes(query.get("by")) ? query.get("by") : "agent";
  const asked = asking(query);
  for (const [name, value] of [["by", by], ["limit", "30"]]) asked.set(name, value);
  const found = (await ask(`/costs?${asked}`)).body.costs;
  const way = (name) => {
    const to = new URLSearchParams(query);
    to.set("by", name);
    return name === by ? el("b", {}, name) : el("a", { href: `#/agents?${to}` }, name);
  };
  const row = (each) => el("tr", {}, [each.name || "(none)", number(each.runs), compact(each.input_tokens), compact(each.output_tokens),
    costOf(each.cost_usd, each.unpriced) || "–", compact(each.judge_tokens), costOf(each.judge_usd, each.judge_unpriced) || "–"].map((text) => el("td", {}, text)));
  const head = [by, "runs", "tokens in", "tokens out", "cost", "judge tokens", "judge cost"];
  return [el("h2", {}, "Cost by ", ["agent", "user", "session", "day"].map((name, at) => [at ? " · " : "", way(name)]), el("small", {}, " newest 5,000 runs, at most 30 rows")),
    el("div", { class: "scroll card", tabindex: "0" }, el("table", { class: "costs" }, el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, found.map(row))))];
}
