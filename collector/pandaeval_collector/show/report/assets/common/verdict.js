// The judge's verdict in parts: each request, its outcome, and the step that shows it.

const BECAME = { done: ["✓", "pass"], "rightly declined": ["✓", "pass"], wrong: ["✗", "fail"], missing: ["✗", "fail"], "needlessly declined": ["✗", "fail"], unknown: ["·", "unscored"] };

function isVerdict(key) {
  return key.endsWith(".correctness") && key.split(".").length === 2;
}

// `opening`: makes a button that shows the full result; `onStep`: opens a step by name (`call 2`); `hrefOf`: its address, on the page of a session.
function verdictOf(result, full, opening, onStep, hrefOf) {
  const held = full.metadata || {}, list = (name) => (Array.isArray(held[name]) ? held[name].filter((each) => each && typeof each === "object") : []);
  const word = result.outcome !== "scored" ? `not judged: ${humane(result.why || result.outcome).toLowerCase()}` : isOpen(result) || result.success === false ? failureName(result) : "Handled correctly";
  const way = (step) => {
    const href = step && hrefOf && hrefOf(step);
    if (!step) return null;
    return href ? el("a", { href }, step) : onStep ? el("button", { class: "link", type: "button", onclick: () => onStep(step) }, step) : el("span", { class: "muted" }, step);
  };
  const item = ([mark, state], text, became, step) => el("li", {}, el("span", { class: `mark ${state}-mark`, "aria-hidden": "true" }, mark), el("span", { dir: "auto" }, text), el("span", { class: "muted" }, became), way(step));
  return el("div", { class: `verdict-of result ${standing(result)}` },
    el("div", { class: "line-head" }, opening(el("span", { class: `chip big ${standing(result)}` }, el("span", { class: "mark", "aria-hidden": "true" }, MARK[standing(result)]), word), result, full),
      held.sure === undefined ? null : el("span", { class: "muted" }, `${Math.round(result.success === false ? 100 - held.sure : held.sure)} % sure${isOpen(result) ? " that it is correct" : ""}`), held.turns > 1 && result.metric === "session.correctness" ? el("span", { class: "muted" }, `over ${many(held.turns, "turn")}`) : null, isSoFar(full) ? el("span", { class: "tag" }, "so far") : null, el("span", { class: "reason", dir: "auto" }, full.reason || ""), beside(full)),
    el("ul", { class: "things" }, list("things").map((each) => item(BECAME[each.became] || BECAME.unknown, each.thing, each.became, each.shown_by)),
      list("broken_rules").map((each) => item(BECAME.wrong, each.rule, "broken rule", each.step)),
      list("misstatements").map((each) => item(each.grave ? BECAME.wrong : BECAME.unknown, each.statement, each.grave ? "false" : "inaccurate", each.step))),
    held.first_wrong_step ? el("p", { class: "first-wrong" }, "First wrong step: ", way(held.first_wrong_step)) : null);
}
