// Actions of a person: agree or disagree with a score, score a session again, make a case. An action of the collector is
// shown only if the collector allows it.

function can(operation) {
  return whole !== null && whole.can.includes(operation);
}

async function tell(path, body, method = "POST") {
  const answer = await fetch(`${location.origin}${location.pathname}api/v1${path}`, {
    method, headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  });
  if (!answer.ok) throw await refusal(answer);
  return answer.status === 204 ? null : answer.json();
}

// A click stores whether a person agrees with a result, and another click removes it. The person's verdict changes no score.
function beside(result) {
  const canDismiss = can("POST /dismissals") && !["llm", "math"].includes(result.by || metric(result.metric).kind);
  if (canDismiss && result.label === "dismissed") return dismissal(result);
  if (!can("POST /annotations") || result.outcome !== "scored" || typeof result.success !== "boolean") return null;
  const unit = subjectOf(result), about = { ...unit, metric: result.metric, annotator: "page" };
  const spot = el("span", { class: "judgement" }), it = result.success ? "pass" : "failure";
  const button = (text, title, path, body, then) => el("button", { class: "link", type: "button", title, onclick: async ({ target }) => {
    target.disabled = true;
    try {
      await tell(path, body);
      then();
    } catch (error) {
      spot.replaceChildren(el("span", { class: "bad", role: "alert" }, `not saved: ${error.message}`));
    }
  } }, text);
  const isFinding = canDismiss && result.success === false, words = [["✓ agree", true], ...(isFinding ? [] : [["✗ disagree", false]])];
  const asked = () => spot.replaceChildren(...words.flatMap(([text, agrees]) => {
    const passed = agrees === result.success;
    return [button(text, `You ${agrees ? "agree" : "disagree"} with this ${it}`, "/annotations", { ...about, passed }, () => shownKept(passed)), " "];
  }), isFinding ? dismissal(result) : "");
  const shownKept = (passed) => spot.replaceChildren(el("span", { class: "muted", role: "status" }, `saved: you ${passed === result.success ? "agree" : "disagree"} with this ${it} · `),
    button("undo", "Remove this label", "/annotations/undo", about, asked));
  asked();
  labelsOf(unit).then((given) => { const held = given.find((each) => each.metric === result.metric && each.annotator === "page" && each.passed !== null); if (held) shownKept(held.passed); }, () => {});
  return spot;
}

// The subject of a result for the API: a session, a trace, or a turn (by its answering span).
function subjectOf({ metric: key, session, span }) {
  const [, trace] = location.hash.slice(2).split("?")[0].split("/");
  if (session) return { session_id: session };
  return { trace_id: key.startsWith("turn.") ? `${trace}:${span}` : trace };
}

// Dismisses a failure that code found, so that no count includes it. Another click withdraws the dismissal.
function dismissal(result) {
  const about = { ...subjectOf(result), metric: result.metric };
  const spot = el("span", { class: "judgement" }), isDismissed = result.label === "dismissed";
  const note = el("input", { type: "text", maxlength: 200, size: 24, placeholder: "why it is false", "aria-label": "Why the finding is false" });
  const by = el("input", { type: "text", maxlength: 200, size: 10, value: kept("by", ""), placeholder: "your name", "aria-label": "Your name" });
  const send = async (undone) => {
    keep("by", by.value);
    try {
      await tell("/dismissals", { ...about, annotator: by.value, comment: note.value, undone });
      await show(true);
    } catch (error) {
      spot.replaceChildren(el("span", { class: "bad", role: "alert" }, `not saved: ${error.message}`));
    }
  };
  const button = (text, run, title) => el("button", { class: "link", type: "button", title, onclick: run }, text);
  const asked = () => {
    const form = el("form", { class: "dismissing", onsubmit: (event) => { event.preventDefault(); send(false); } }, note, " ", by, " ", el("button", { class: "link" }, "Dismiss"), " ", button("Cancel", first));
    spot.replaceChildren(form);
    note.focus();
  };
  const first = () => spot.replaceChildren(isDismissed ? button("Count it again", () => send(true), "Withdraw the dismissal") : button("Dismiss", asked, "This finding is false. No count will include it."));
  first();
  return spot;
}

const labels = new Map();

// People's verdicts on the shown trace, turn or session, requested once for all of its scores.
function labelsOf(unit) {
  const path = `/annotations?limit=500&${new URLSearchParams(unit)}`;
  if (!labels.has(path)) {
    labels.set(path, ask(path).then(({ body }) => body.items));
    setTimeout(() => labels.delete(path));
  }
  return labels.get(path);
}

// Scores a session again. The first click shows the estimated cost, and the second click starts the run. The run can cost
// twice the estimate.
function again(session) {
  if (!can("POST /runs") || !session) return null;
  const asked = Object.entries(store.metrics).filter(([, each]) => each.level === "trace").map(([key]) => key).sort();
  const metrics = el("select", { multiple: true, size: Math.min(8, asked.length) }, asked.map((key) =>
    el("option", { value: key, selected: store.metrics[key].kind === "llm" && whole.judge !== null }, metricName(key))));
  const model = el("input", { type: "text", placeholder: whole.judge || "no model configured", value: "" });
  const said = el("p", { class: "muted", role: "status" });
  const start = el("button", { class: "more", type: "button", hidden: true }, "Start");
  let budget = null;
  const body = (dry) => ({ metrics: [...metrics.selectedOptions].map((each) => each.value), filters: { session: session.id },
    model: model.value || null, name: `from the page: ${session.id}`.slice(0, 200), dry_run: dry, budget_usd: dry ? null : budget });
  const attempt = async (dry, done) => {
    start.hidden = true;
    try {
      done(await tell("/runs", body(dry)));
    } catch (error) {
      said.textContent = error.message;
    }
  };
  const look = el("button", { class: "more", type: "button", onclick: () => {
    said.textContent = "Estimating …";
    attempt(true, (found) => {
      const price = found.cost_usd === null ? "at an unknown price" : `about $${found.cost_usd.toFixed(4)}`;
      budget = found.cost_usd === null ? null : Math.max(0.01, 2 * found.cost_usd);
      const most = budget === null || !found.calls ? "" : `; limit $${budget.toFixed(2)}`;
      said.textContent = `${many(found.traces, "trace")}, ${many(found.calls, "judge call")}, ${price}${most}.`;
      start.hidden = !found.traces;
    });
  } }, "Estimate cost");
  start.addEventListener("click", () => attempt(false, (run) => { said.textContent = `Evaluation run ${run.id} started.`; follow(run.id, said); }));
  return el("details", { class: "again" }, el("summary", {}, "Evaluate again"),
    el("form", { class: "filters", onsubmit: (event) => event.preventDefault() }, el("label", {}, "Metrics ", metrics), el("label", {}, "Judge ", model)),
    look, " ", start, said);
}

// The command that makes a case from the shown object. `of`: kind of the id: a trace (or session), or a failure.
function asCase(of, id) {
  return el("details", { class: "again" }, el("summary", {}, "Create a test case"), copied(`pandaeval cases from-${of} ${shellWord(id)} --url ${location.origin} --output case.yaml`, true),
    el("p", { class: "muted" }, "The command writes the run, without secrets, as a case for your test suite (docs/guides/cases.md)."));
}

async function follow(id, said) {
  try {
    const run = await (await fetch(`${location.origin}${location.pathname}api/v1/runs/${id}`)).json();
    if (!said.isConnected) return;
    said.textContent = `Evaluation run ${id}: ${run.state}${run.error ? ` (${run.error})` : ""}, ${number(run.done)} of ${many(run.traces, "trace")}${run.failed ? `, ${number(run.failed)} failed` : ""}, $${run.cost_usd.toFixed(4)}. ${run.state === "done" ? `pandaeval runs compare ${id}` : ""}`;
    if (["queued", "running"].includes(run.state)) setTimeout(() => follow(id, said), 2000);
  } catch (error) {
    said.textContent = error.message;
  }
}
