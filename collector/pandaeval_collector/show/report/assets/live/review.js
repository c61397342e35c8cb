// Unlabelled verdicts for a person to check one by one: unclear and disputed runs first, or a random draw.

const REVIEWED = 50;
const QUEUES = [["Unclear first", unclearRuns, false], ["Random draw", drawnRuns, true]]; // the last: whether the judge's verdict is hidden

async function review(key) {
  if (!can("POST /annotations")) return null;
  const spot = el("section", { class: "card review", "aria-live": "polite" }), choices = el("small", { class: "choices", role: "group", "aria-label": "Runs to review" });
  const show = async (chosen) => {
    const [, read, isBlind] = QUEUES[chosen];
    choices.replaceChildren(...QUEUES.map(([name], at) => el("button", { class: "pill", type: "button", "aria-pressed": String(at === chosen), onclick: () => show(at) }, name)));
    try {
      await queued(key, await read(key), isBlind, spot);
    } catch (error) {
      if (!error.expected) throw error;
      spot.replaceChildren(el("p", { class: "bad", role: "alert" }, `not loaded: ${error.message}`));
    }
  };
  await show(0);
  return [el("h2", {}, "Review ", choices), spot];
}

function isOfSession(key) {
  return key.startsWith("session.");
}

function idOf(item, key) {
  return isOfSession(key) ? item.session_id : item.trace_id;
}

async function labelledIds(key) {
  const done = new Set();
  for (let cursor = ""; cursor !== null;) {
    const { body } = await ask(`/annotations?limit=500&metric=${key}${cursor && `&cursor=${cursor}`}`);
    for (const label of body.items) done.add(label.session_id || label.trace_id);
    cursor = body.next;
  }
  return done;
}

async function unclearRuns(key) {
  const list = (label) => ask(`/${isOfSession(key) ? "sessions" : "traces"}?limit=${REVIEWED}&metric=${key}${label && `&label=${label}`}`);
  const [done, ...lists] = await Promise.all([labelledIds(key), ...[...OPEN, ""].map(list)]);
  return [...new Map(lists.flatMap(({ body }) => body.items).map((item) => [idOf(item, key), item])).values()].filter((item) => idOf(item, key) !== null && !done.has(idOf(item, key)));
}

// Labels of drawn runs count for the corrected rate. Each run is read only when it is shown.
async function drawnRuns(key) {
  return (await tell("/labels/draw", { metric: key, count: REVIEWED })).items;
}

function reviewedResult(item, key) {
  return item.results.find((each) => `${each.level}.${each.metric}` === key);
}

// Reads the first run of a queue. A run without a verdict, or that is no longer stored, leaves the queue.
async function readFirst(waiting, key) {
  while (waiting.length && !waiting[0].results) {
    try {
      const { body } = await ask(`/${isOfSession(key) ? "sessions" : "traces"}/${encodeURIComponent(idOf(waiting[0], key))}`);
      if (reviewedResult(body, key)) waiting[0] = body; else waiting.shift();
    } catch (error) {
      if (!error.expected) throw error;
      waiting.shift();
    }
  }
}

// Shows the first run of a queue in `spot`. `undo`: withdraws the last label.
async function queued(key, waiting, isBlind, spot, undo) {
  if (waiting.length && !waiting[0].results) await readFirst(waiting, key);
  const [item] = waiting, result = item && reviewedResult(item, key);
  const last = el("p", { class: "muted" }, undo ? ["Saved. ", el("button", { class: "link", type: "button", onclick: undo }, "Undo")] : null);
  if (!result) { spot.replaceChildren(el("p", {}, "No verdict waits for a label."), last); return; }
  const id = idOf(item, key), run = item.worst || item, about = { [isOfSession(key) ? "session_id" : "trace_id"]: id, metric: key, annotator: "page" }, status = el("p", { class: "bad", role: "alert" });
  const say = async (passed) => {
    try {
      await tell("/annotations", { ...about, passed });
      waiting.shift();
      await queued(key, waiting, isBlind, spot, async () => { await tell("/annotations/undo", about); waiting.unshift(item); queued(key, waiting, isBlind, spot); });
      spot.querySelector("button").focus();
    } catch (error) {
      status.textContent = `not saved: ${error.message}`;
    }
  };
  const verdict = isBlind || result.success === null ? null : result.success, names = verdict === null ? [["Right", true, "r"], ["Wrong", false, "w"]] : [["Agree", verdict, "a"], ["Disagree", !verdict, "d"]];
  const step = !isBlind && result.metadata && result.metadata.first_wrong_step, href = isOfSession(key) ? `#/session/${encodeURIComponent(id)}` : `#/trace/${id}`;
  const link = el("a", { href: step ? `${href}?step=${encodeURIComponent(step)}` : href }, step ? `First wrong step: ${step}` : "Open the run");
  spot.onkeydown = (event) => { const hit = !event.ctrlKey && !event.metaKey && !event.altKey && names.find(([, , letter]) => letter === event.key); if (hit) say(hit[1]); };
  spot.replaceChildren(...[el("p", { class: "says" }, el("b", { dir: "auto" }, item.question || run.input || "no question captured")), el("p", { dir: "auto" }, `→ ${run.output || "no answer captured"}`),
    el("p", {}, isBlind ? [el("span", { class: "muted" }, "The judge's verdict is hidden. Label all runs, because their labels estimate the rate. "), link]
      : [el("b", {}, verdict === null ? humane(result.label || "unclear") : verdict ? "Handled correctly" : failureName({ metric: key, label: result.label })), " ", el("span", { class: "muted", dir: "auto" }, result.reason), " ", link]),
    el("p", { class: "choices" }, names.map(([name, passed, letter]) => el("button", { class: "pill", type: "button", title: `Key: ${letter}`, onclick: () => say(passed) }, `${name} (${letter})`)), el("button", { class: "link", type: "button", onclick: () => { waiting.push(waiting.shift()); queued(key, waiting, isBlind, spot); } }, "Skip")),
    el("p", { class: "muted" }, `${many(waiting.length, "verdict")} in this queue`), status, last].filter(Boolean));
}
