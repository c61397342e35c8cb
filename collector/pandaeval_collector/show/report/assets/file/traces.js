// All traces, filtered and sorted.

const SORTS = {
  worst: ["worst first", (a, b) => badness(a) - badness(b)],
  time: ["by time", (a, b) => a.at - b.at],
  slow: ["slowest first", (a, b) => b.us - a.us],
  tokens: ["most tokens first", (a, b) => sum(b.tokens) - sum(a.tokens)],
};

// Crashes first, then failures by signal, then the rest.
function badness(trace) {
  const signal = trace.error !== undefined ? 0 : trace.worst ? trace.worst.signal : 2;
  return trace.failed.length || trace.error !== undefined ? signal : 10 + signal;
}

function tracesPage(query) {
  const list = el("div", { class: "rows" });
  const count = el("p", { class: "muted", role: "status" });
  const foot = el("div", {});
  const change = (name) => (event) => {
    if (event.target.value) query.set(name, event.target.value); else query.delete(name);
    history.replaceState(null, "", `#/traces?${query}`);
    show();
  };
  const show = () => {
    const found = matching(query).sort((SORTS[query.get("sort")] || SORTS.worst)[1]);
    count.textContent = `${many(found.length, "trace")} of ${number(store.index.traces.length)}`;
    list.replaceChildren();
    foot.replaceChildren(paged(found, 50, (trace) => traceRow(trace), list));
  };
  const keys = Object.keys(store.metrics).filter((key) => store.metrics[key].asked && isListable(key));
  const agents = [...new Set(store.index.traces.map((trace) => trace.agent).filter(Boolean))].sort();
  const whys = [...new Set(store.index.unscored.map((entry) => entry.why))];
  const filters = el("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
    el("label", {}, "Search ", el("input", { type: "search", id: "search", value: query.get("q") || "", placeholder: "text, id, agent  ( / )", oninput: later(change("q")) })),
    choice("Metric", "metric", [["", "any"], ...keys.map((key) => [key, metricName(key)])], query, change),
    choice("Result", "state", [["", "any"], ["fail", "failed"], ["pass", "passed"], ["unclear", "unclear"], ["disputed", "disputed"], ["suspect", "suspected"], ["unscored", "not scored"], ["assumed", "assumed"], ["error", "crash"]], query, change),
    whys.length ? choice("Not scored for", "why", [["", "any reason"], ...whys.map((why) => [why, why.replaceAll("_", " ")])], query, change) : null,
    agents.length > 1 ? choice("Agent", "agent", [["", "any"], ...agents.slice(0, 200).map((name) => [name, name])], query, change) : null,
    choice("Sort", "sort", Object.entries(SORTS).map(([name, [label]]) => [name, label]), query, change));
  show();
  const told = query.has("from") ? `Scores from ${query.get("from")} to ${query.get("to")}. ` : "";
  const bin = told ? el("p", { class: "notice" }, told, el("a", { href: "#/traces" }, "All traces")) : null;
  return [el("h1", {}, "Traces"), filters, bin, count, list, foot];
}

// Whether traces can be filtered by this metric: a trace, a turn, or the verdict on a session.
function isListable(key) {
  return metric(key).level !== "session" || isVerdict(key);
}

function matching(query) {
  const wanted = (query.get("q") || "").toLowerCase();
  const key = query.get("metric"), state = query.get("state"), agent = query.get("agent"), why = query.get("why");
  const from = Number(query.get("from")), to = Number(query.get("to"));
  const fits = (result) => (!key || result.metric === key) && (!why || result.why === why)
    && (!state || state === "error" || standing(result) === state)
    && (!query.has("from") || (result.outcome === "scored" && result.score >= from && (result.score < to || (to >= 1 && result.score <= 1))));
  const filtered = key || why || query.has("from") || (state && state !== "error");
  return store.index.traces.filter((trace) =>
    (!agent || trace.agent === agent) && (state !== "error" || trace.error !== undefined)
    && (!filtered || withVerdicts(trace).some(fits)) && (!wanted || searched(trace).includes(wanted)));
}

function searched(trace) {
  if (trace.search === undefined) {
    const session = trace.of ? trace.of.id : "";
    const said = withVerdicts(trace).map((result) => result.reason || "").join("\n");
    trace.search = [trace.id, session, trace.agent, trace.service, trace.user, trace.in, trace.out, trace.error, said].join("\n").toLowerCase();
  }
  return trace.search;
}
