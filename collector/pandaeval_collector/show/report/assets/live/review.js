// Verdicts for a person to check, one by one: unclear and disputed runs first, then the others, without those that have a label.

const REVIEWED = 50;

async function review(key) {
  if (!can("POST /annotations")) return null;
  const ofSession = key.startsWith("session."), list = (label) => ask(`/${ofSession ? "sessions" : "traces"}?limit=${REVIEWED}&metric=${key}${label && `&label=${label}`}`);
  const [labelled, ...lists] = await Promise.all([ask(`/annotations?limit=500&metric=${key}`), ...[...OPEN, ""].map(list)]);
  const idOf = (item) => (ofSession ? item.session_id : item.trace_id), done = new Set(labelled.body.items.map((label) => label.session_id || label.trace_id));
  const waiting = [...new Map(lists.flatMap(({ body }) => body.items).map((item) => [idOf(item), item])).values()].filter((item) => idOf(item) !== null && !done.has(idOf(item)));
  const spot = el("section", { class: "card review", "aria-live": "polite" });
  const last = (undo) => el("p", { class: "muted" }, undo ? ["Saved. ", el("button", { class: "link", type: "button", onclick: undo }, "Undo")] : null);
  const next = (undo) => {
    const [item] = waiting, result = item && item.results.find((each) => `${each.level}.${each.metric}` === key);
    if (!result) { spot.replaceChildren(el("p", {}, "No verdict waits for a label."), last(undo)); return; }
    const id = idOf(item), run = item.worst || item, about = { [ofSession ? "session_id" : "trace_id"]: id, metric: key, annotator: "page" }, status = el("p", { class: "bad", role: "alert" });
    const say = async (passed) => {
      try {
        await tell("/annotations", { ...about, passed });
        waiting.shift();
        next(async () => { await tell("/annotations/undo", about); waiting.unshift(item); next(); });
        spot.querySelector("button").focus();
      } catch (error) {
        status.textContent = `not saved: ${error.message}`;
      }
    };
    const verdict = result.success === null ? null : result.success, names = verdict === null ? [["Right", true, "r"], ["Wrong", false, "w"]] : [["Agree", verdict, "a"], ["Disagree", !verdict, "d"]];
    const step = result.metadata && result.metadata.first_wrong_step, href = ofSession ? `#/session/${encodeURIComponent(id)}` : `#/trace/${id}`;
    spot.onkeydown = (event) => { const hit = !event.ctrlKey && !event.metaKey && !event.altKey && names.find(([, , letter]) => letter === event.key); if (hit) say(hit[1]); };
    spot.replaceChildren(...[el("p", { class: "says" }, el("b", { dir: "auto" }, item.question || run.input || "no question captured")), el("p", { dir: "auto" }, `→ ${run.output || "no answer captured"}`),
      el("p", {}, el("b", {}, verdict === null ? humane(result.label || "unclear") : verdict ? "Handled correctly" : failureName({ metric: key, label: result.label })), " ", el("span", { class: "muted", dir: "auto" }, result.reason), " ", el("a", { href: step ? `${href}?step=${encodeURIComponent(step)}` : href }, step ? `First wrong step: ${step}` : "Open the run")),
      el("p", { class: "choices" }, names.map(([name, passed, letter]) => el("button", { class: "pill", type: "button", title: `Key: ${letter}`, onclick: () => say(passed) }, `${name} (${letter})`)), el("button", { class: "link", type: "button", onclick: () => { waiting.push(waiting.shift()); next(); } }, "Skip")),
      el("p", { class: "muted" }, `${many(waiting.length, "verdict")} in this queue`), status, last(undo)].filter(Boolean));
  };
  next();
  return [el("h2", {}, "Review ", el("small", {}, "unclear and disputed first")), spot];
}
