// Reliability of the scores: people's labels compared with the judge, and evaluation runs.

// Of the first page.
function trust(query) {
  const missing = sum(rated.unscored.map((entry) => entry.count));
  const line = (name, ...value) => el("p", {}, el("span", { class: "muted" }, name), el("span", {}, ...value));
  return el("section", { class: "card trust" }, el("h2", {}, "Trust ", el("a", { href: "#/trust" }, "details")),
    line("task success", whole.judge ? ["judged by ", el("b", {}, whole.judge)] : el("b", {}, "not judged")),
    whole.judge && line("handled correctly", verdictsOf(query, query.get("agent"))),
    line("could not be scored", el("b", {}, number(missing)), ` ${missing === 1 ? "result" : "results"}`),
    line("detection rate", el("a", { href: "#/trust" }, "run a drill")));
}

async function trustPage() {
  watched = null;
  said("");
  const { body } = await ask("/annotations?limit=200");
  const all = new URLSearchParams({ window: "all" });
  whole = (await ask("/overview")).body;
  rated = await ratesOf(all);
  const held = body.items, key = `${judged().level}.correctness`, of = judged().all + judged().open ? ` --metric ${key}` : "";
  return [el("h1", {}, "Trust"), el("p", { class: "lead" }, "How reliable the pass rates are. Human labels on drawn runs correct the judge's pass rate and give it an interval."),
    el("div", { class: "cards two" }, judging(),
      el("section", { class: "card" }, el("h2", {}, "Corrected pass rates"), corrected(null, all) && el("p", {}, "Handled correctly: ", el("b", {}, corrected(null, all))), el("p", {}, "With 50 or more labels on drawn runs, /metrics contains pandaeval_pass_rate and its interval, by metric and agent."),
        copied([`next${of} --n 20 --out todo.csv`, "import todo.csv", "rates"].map((each) => `pandaeval labels ${each} --store ${shellWord(whole.data)}`).join("\n"), true),
        el("p", {}, "To review unclear runs first (rates ignore their labels):"), copied(`pandaeval labels next${of} --unclear --out unclear.csv --store ${shellWord(whole.data)}`, true)), unscored(all),
      el("section", { class: "card" }, el("h2", {}, "Detection rate"), el("p", {}, "A drill plants known faults into copies of your good runs and counts the faults that metrics find. It needs no labels and no model."),
        copied(`pandaeval drill --store ${shellWord(whole.data)}`, true), el("p", { class: "muted" }, "Run it on the machine of the collector."))),
    of ? await review(key) : null,
    el("h2", {}, "Human labels ", el("small", {}, held.length ? `the newest ${number(held.length)}` : "none yet: add labels with the buttons beside a score")),
    held.length ? el("section", { class: "card flush" }, held.map((label) => el("a", { class: "example", href: label.trace_id ? `#/trace/${label.trace_id}` : `#/session/${encodeURIComponent(label.session_id)}` },
      el("span", {}, metricName(label.metric), " ", el("code", { class: "muted" }, label.metric)), el("span", {}, label.passed === null ? score(label.score) : label.passed ? "✓ passes" : "✗ fails", " ", label.annotator ? el("small", {}, label.annotator) : null), el("span", { class: "when" }, when(label.at))))) : null];
}

// A name, quoted for a shell.
function shellWord(name) {
  return /^[\w./-]+$/.test(name || "") ? name : `'${(name || "").replaceAll("'", "'\\''")}'`;
}

async function runsPage() {
  watched = null;
  said("");
  const { body } = await ask("/runs?limit=100");
  const head = ["evaluation run", "state", "metrics", "traces", "judge calls", "cost", "began"];
  const row = (run) => el("tr", {}, el("th", { scope: "row" }, run.name || run.id, el("small", {}, el("code", {}, run.id))), el("td", {}, run.state, run.error ? el("small", { class: "bad" }, run.error) : null), el("td", {}, run.metrics.map(metricName).join(", ")),
    el("td", {}, `${number(run.done)} of ${number(run.traces)}`, run.failed ? el("small", { class: "bad" }, `${number(run.failed)} failed`) : null), el("td", {}, number(run.calls)), el("td", {}, dollars(run.cost_usd)), el("td", {}, when(run.created_at)));
  return [el("h1", {}, TITLES.runs), el("p", { class: "lead" }, "Stored traces, scored again with other metrics or another judge."),
    body.items.length ? el("div", { class: "scroll card", tabindex: "0" }, el("table", { class: "rates runs" }, el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, body.items.map(row))))
      : el("section", { class: "card" }, el("p", {}, "No evaluation runs yet. Use ", el("i", {}, "Evaluate again"), " on the page of a session, or this command for many sessions:"), copied(`pandaeval runs start --url ${location.origin} --since 24h --metrics ${whole.judge ? "task_completion" : "grounding,response"} --dry-run`, true))];
}
