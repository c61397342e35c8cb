// The judge's questions to an agent's owner, and rulings, which answer the questions. A judge that read spans worded the
// questions, so the page only shows them, and never sends them as a ruling.

async function questionsPage() {
  watched = null;
  said("");
  const { items } = (await ask("/questions")).body;
  whole = (await ask("/overview")).body;
  const held = can("POST /rulings") ? (await ask("/rulings")).body : null;
  return [el("h1", {}, TITLES.questions), el("p", { class: "lead" }, "These verdicts are unclear because a rule is unclear. The judge follows your answer."),
    items.length ? items.map(questionCard) : el("p", { class: "notice" }, "There are no unanswered questions."),
    held && held.items.length ? [el("h2", {}, "Rulings ", el("small", {}, held.path)), el("section", { class: "card" }, held.items.map(rulingLine))] : null];
}

function questionCard(question) {
  const example = ({ trace_id: trace, session_id: session }) => el("a", { href: session ? `#/session/${encodeURIComponent(session)}` : `#/trace/${trace}` }, session || trace.slice(0, 12));
  return el("section", { class: "card question" }, el("h2", { dir: "auto" }, question.question, " ", el("small", {}, `${many(question.runs, "run")} · ${question.agents.filter(Boolean).join(", ") || "no agent name"}`)),
    question.wordings.map((text) => el("p", { class: "muted", dir: "auto" }, text)),
    el("p", {}, "For example ", question.examples.flatMap((each, n) => [n ? ", " : "", example(each)])), can("POST /rulings") ? answerForm(question) : null);
}

// Three clicks: estimate the cost, try the ruling, keep the ruling.
function answerForm(question) {
  const text = el("textarea", { rows: 2, maxlength: 600, "aria-label": "Your ruling", placeholder: "One sentence that holds for every run" });
  const agent = el("select", { "aria-label": "For" }, el("option", { value: "" }, "all agents"), question.agents.filter(Boolean).map((name) => el("option", { value: name }, name)));
  const by = el("input", { type: "text", maxlength: 200, value: kept("by", ""), placeholder: "who you are", "aria-label": "Author" });
  const status = el("p", { class: "muted", role: "status" }), spot = el("span", {});
  const asked = (more) => ({ text: text.value.trim(), question: question.id, agent: agent.value, author: by.value.trim() || "page", ...more });
  const step = (name, action) => spot.replaceChildren(el("button", { class: "more", type: "button", onclick: async ({ target }) => {
    target.disabled = true;
    try {
      await action();
    } catch (error) {
      status.textContent = error.message;
      first();
    }
  } }, name));
  const first = () => step("Estimate the cost", async () => {
    const found = await tell("/rulings/try", asked({ dry_run: true }));
    const tokens = number(found.prompt_tokens + found.completion_tokens), usd = found.cost_usd;
    status.textContent = `${many(found.calls, "call")}, ${tokens} tokens, ${usd === null ? "price unknown" : `about $${usd.toFixed(4)}`}.`;
    step("Try it", async () => {
      keep("by", by.value.trim());
      const run = await tell("/rulings/try", asked({ budget_usd: Math.max(0.01, 2 * (usd || 0)) }));
      status.textContent = await effectOf(run.id, status);
      step("Keep the ruling", async () => {
        const { again } = await tell("/rulings", { run: run.id });
        spot.replaceChildren();
        status.textContent = `The ruling is in force. PandaEval judges ${many(again, "verdict")} again.`;
      });
    });
  });
  for (const each of [text, agent, by]) each.addEventListener("input", first);
  first();
  return el("form", { class: "answer", onsubmit: (event) => event.preventDefault() }, text, el("div", { class: "filters" }, el("label", {}, "For ", agent), el("label", {}, "Author ", by)), spot, status);
}

async function effectOf(id, status) {
  let run;
  do {
    await new Promise((done) => setTimeout(done, 1000));
    run = await (await fetch(`${location.origin}${location.pathname}api/v1/runs/${id}`)).json();
    status.textContent = `${number(run.done)} of ${many(run.traces, "trace")} tried.`;
  } while (["queued", "running"].includes(run.state) && status.isConnected);
  const { metrics } = (await ask(`/runs/compare?a=${id}&b=live`)).body;
  const told = metrics.map(({ metric, decided, pairs, flips, labelled, right }) => `${metricName(metric)}: decided ${number(decided[1])} → ${number(decided[0])} of ${number(pairs)}, ${many(flips, "verdict")} flipped${labelled ? `, agrees with labels ${number(right[1])} → ${number(right[0])} of ${number(labelled)}` : ""}.`);
  return [...told, run.error].filter(Boolean).join(" ");
}

function rulingLine(ruling) {
  const line = el("p", { dir: "auto" }, ruling.text, " ", el("small", { class: "muted" }, [ruling.agent || "all agents", ruling.author, ruling.date, ruling.state === "adopted" ? "" : ruling.state].filter(Boolean).join(" · ")), " ",
    el("button", { class: "link", type: "button", onclick: async () => {
      try {
        await tell(`/rulings/${ruling.id}`, {}, "DELETE");
        line.remove();
      } catch (error) {
        line.append(el("span", { class: "bad", role: "alert" }, ` not removed: ${error.message}`));
      }
    } }, "remove"));
  return line;
}
