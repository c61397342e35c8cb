// The first page: failures, the basis of the scores, unscored results, and the worst rows.

function overview() {
  const { index } = store;
  const units = index.order.map((each) => unitOf(index, each));
  if (!index.traces.length) return [el("h1", {}, "No agent traces in this input"), nothing(), others()];
  const list = el("div", { class: "rows" });
  const more = paged(units, 20, unitRow, list);
  return [
    el("h1", {}, index.about.gates.length ? `Failed: ${headline(units)}` : headline(units)),
    index.about.gates.map((told) => el("p", { class: "lead" }, el("b", { class: "bad" }, "✗ "), told)),
    el("p", { class: "lead" }, about()),
    index.unasked ? el("p", { class: "lead unasked" }, index.unasked) : null,
    el("div", { class: "cards three" }, failures(), certainty(), unscored()),
    causes(index.about.failures),
    cases(),
    el("h2", {}, "Worst first"),
    list, more,
    others(),
    el("h2", {}, "Scores by metric and agent"),
    distributions(),
  ];
}

function headline(units) {
  const { index } = store;
  const bad = units.filter((unit) => unitState(unit) === "bad").length;
  if (units.every((unit) => unitState(unit) === "none")) return blankHeadline(units);
  if (index.judged) return index.judged;
  return `Not judged: ${bad ? `${number(bad)} of` : "no findings in"} ${manyUnits(index.order)}${bad ? ` ${bad === 1 ? "has" : "have"} findings` : ""}`;
}

function about() {
  const { about: from, traces, sessions } = store.index;
  const starts = traces.map((trace) => trace.at);
  const first = starts.reduce((a, b) => Math.min(a, b)), last = starts.reduce((a, b) => Math.max(a, b));
  const agents = new Set(traces.map((trace) => trace.agent)).size;
  const when = first === last ? moment(first) : `${moment(first)} to ${moment(last, moment(first).slice(0, 10) !== moment(last).slice(0, 10))}`;
  const parts = [many(traces.length, "run"), sessions.length && many(sessions.length, "session"), many(agents, "agent"), `${when} UTC`];
  return [parts.filter(Boolean).join(" · "),
    from.without_agents ? ` · ${many(from.without_agents, "trace")} without an agent left out` : "",
    from.where ? el("span", { class: "where" }, ` · only ${from.where}: ${many(from.left_out, "run")} left out`) : "",
    from.unreadable ? el("details", { class: "warning" }, el("summary", {}, `${many(from.unreadable, "part")} of the input could not be read`),
      el("ul", {}, from.problems.map((problem) => el("li", {}, problem)))) : ""];
}

function nothing() {
  const { about: from } = store.index;
  return el("p", { class: "lead" }, `${many(from.requests, "request")} with ${many(from.items, "span or log record", "spans and log records")} read, `
    + `${many(from.without_agents, "trace")} without an agent. To see how the input was read: pandaeval inspect ${from.sources[0] || "FILE"}`);
}

// Results about neither a trace nor a session, such as those of a task over its trials.
function others() {
  const results = [...store.index.others].sort(byUrgency);
  if (!results.length) return null;
  return [el("h2", {}, "Results across traces"), el("section", { class: "card" }, results.slice(0, 200).map((result) =>
    el("div", { class: "result" }, el("div", { class: "id muted" }, result.unit), resultOrLine(result, result))))];
}

// Failures by root cause, most severe first.
function causes(groups) {
  if (!groups || !groups.length) return null;
  return [el("h2", {}, "Failures by root cause"), el("section", { class: "card" }, groups.map((group) =>
    el("div", { class: "why" },
      el("div", {}, el("b", {}, `[${group.severity}] ${group.title.replace(/: .*/, (label) => label.replaceAll("_", " "))}`), ` × ${number(group.occurrences)}`),
      el("div", { class: "muted" }, group.description),
      el("div", { class: "muted" }, "Examples: ", group.examples.flatMap((each, at) => [at ? ", " : "", placed(each)])))))];
}

function placed(example) {
  const href = example.trace && traceHref(example.trace);
  return href ? el("a", { href }, example.place) : example.place;
}

// The three-layer report: which layer of the agent broke, by case.
function cases() {
  const rows = store.index.about.cases || [];
  if (!rows.length) return null;
  const head = ["case", "kind", "correct", "reasoning", "action", "outcome", "failed in", "why"];
  const cells = (row) => [row.case, row.kind, `${row.correct} of ${row.trials}${row.undetermined ? `, ${row.undetermined} undecided` : ""}`,
    ...row.layers, row.broke || "–", row.why];
  return [el("h2", {}, "Cases, incorrect cases first"), el("section", { class: "card cases scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, head.map((name) => el("th", {}, name)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, cells(row).map((text) => el("td", {}, text)))))))];
}

// Failures by metric, with links to the traces.
function failures() {
  const found = new Map();
  for (const row of [...store.index.traces, ...store.index.sessions]) {
    for (const result of row.results) {
      if (result.outcome !== "scored" || isExplaining(result.metric)) continue;
      const entry = found.get(result.metric) || { bad: 0, all: 0, held: [] };
      entry.held.push(result);
      entry.all += result.selected ? NaN : !isOpen(result);
      entry.bad += result.success === false;
      found.set(result.metric, entry);
    }
  }
  const broken = store.index.traces.filter((trace) => trace.error !== undefined);
  const fine = [...found].filter(([, entry]) => !entry.bad).map(([key, entry]) => metricName(key) + (entry.held.some(isOpen) ? ` (${decided(tallied(entry.held))})` : ""));
  const lines = [...found].filter(([, entry]) => entry.bad).sort(([, a], [, b]) => b.bad - a.bad || b.all - a.all).map(([key, entry]) =>
    bar(metricName(key), entry.bad, onlyFindings(metric(key)) ? 0 : entry.all || 0, entry.held.some(isOpen) ? decided(tallied(entry.held)) : metric(key).question, `#/traces?metric=${encodeURIComponent(key)}&state=fail`, !isListable(key)));
  if (broken.length) lines.unshift(bar("Crash", broken.length, store.index.traces.length, "The outermost agent ended with an error", "#/traces?state=error"));
  return el("section", { class: "card" }, el("h2", {}, "Failures by metric"), lines,
    fine.length ? el("p", { class: "muted" }, `No failure in ${fine.join(", ")}.`) : null, found.size ? null : el("p", { class: "muted" }, "No metric gave a score."));
}

// A judged metric without a judge: only findings of code have a score, so there is no share.
function onlyFindings(known) {
  return known.kind === "llm" && !known.scored_by.llm;
}

// `all`: 0 if a total has no meaning.
function bar(name, bad, all, title, href, still) {
  const line = [el("span", { class: "name" }, name), all ? el("span", { class: "track" }, el("span", { class: "fill", "--share": `${(100 * bad) / all}%` })) : el("span"),
    el("span", { class: "count" }, bad ? el("b", {}, number(bad)) : "0", all ? ` of ${number(all)}` : " found")];
  return still || !bad ? el("div", { class: "bar", title }, line) : el("a", { class: "bar", title, href }, line);
}

function certainty() {
  const results = [...store.index.traces, ...store.index.sessions].flatMap((unit) => unit.results).concat(store.index.others);
  const count = (outcome) => results.filter((result) => result.outcome === outcome).length;
  const scored = count("scored"), assumed = count("assumed"), missing = count("unscored");
  const kinds = new Map();
  for (const each of Object.values(store.metrics)) {
    for (const [kind, times] of Object.entries(each.scored_by)) kinds.set(kind, (kinds.get(kind) || 0) + times);
  }
  const models = (kind) => {
    const names = [...new Set(Object.values(store.metrics).filter((each) => each.kind === kind).flatMap((each) => each.models))];
    return names.length ? ` (${names.join(", ")})` : "";
  };
  const silent = Object.values(store.metrics).filter((each) => !each.asked && each.kind === "llm" && each.level !== "trial");
  return el("section", { class: "card" }, el("h2", {}, "Basis of the scores"),
    el("p", { class: "big" }, results.length ? percent(scored / (scored + missing || 1)) : "–", el("span", { class: "muted" }, " of applicable results have a score")),
    el("p", { class: "muted" }, `${number(scored)} scored, ${number(assumed)} assumed (nothing to evaluate), ${number(missing)} not scored`),
    el("ul", { class: "plain" }, [...kinds].sort(([, a], [, b]) => b - a).map(([kind, times]) => el("li", {}, el("b", {}, `${number(times)} ${kindOf(kind)[0]}`), models(kind), kindOf(kind)[1] && `: ${kindOf(kind)[1]}`))),
    silent.length ? el("details", {}, el("summary", {}, `${many(silent.length, "judged metric")} not run`),
      el("ul", { class: "plain" }, silent.map((each) => el("li", {}, el("b", {}, each.name), `: ${each.question}`))),
      el("p", {}, store.index.about.judge ? "Disabled by metrics.enabled, not requested (judge.detail), or not applicable." : ["No judge is configured. Set a model with ", el("code", {}, "--model openai/gpt-4o-mini"), " or judge.model."])) : null);
}

function unscored() {
  const { unscored: entries } = store.index;
  return el("section", { class: "card" }, el("h2", {}, "Not scored"),
    entries.length ? entries.slice(0, 2).map(unscoredEntry) : el("p", { class: "muted" }, "Every applicable metric has a score."),
    entries.length > 2 ? el("details", { class: "why" }, el("summary", {}, `${many(entries.length - 2, "more reason")}, ${many(sum(entries.slice(2).map((each) => each.count)), "result")}`),
      entries.slice(2).map(unscoredEntry)) : null);
}

function unscoredEntry(entry) {
  const metrics = Object.entries(entry.metrics).map(([key, count]) => `${metricName(key)} ${number(count)}`).join(", ");
  return el("div", { class: "why" },
    el("div", {}, el("b", {}, entry.why.replaceAll("_", " ")), ` × ${number(entry.count)} `, el("span", { class: "muted" }, metrics)),
    entry.cure ? el("div", { class: "cure" }, entry.cure) : null,
    el("a", { href: `#/traces?why=${encodeURIComponent(entry.why)}` }, "Show traces"));
}
