// Deletes the data of a trace, a session, a user or old days. The page first counts the data, and asks before it deletes.

const DELETED = { trace: (id) => `trace ${id}`, session: (id) => `session ${id}`, user: (id) => `user ${id}`, before: (day) => `all runs before ${day} (UTC)` };

function rowsOf(plural, size) {
  return many(size, plural.replace(/(?<=ch)es$|s$/, ""), plural);
}

// `chosen`: the ID by kind; a kind without an ID is not offered. `at`: the time of the run, for old days.
function deletion(chosen, at) {
  if (!can("POST /delete")) return null;
  const ids = { ...chosen, before: moment(at).slice(0, 10) }, kinds = Object.keys(DELETED).filter((kind) => ids[kind]);
  const of = el("select", { onchange: () => first() }, kinds.map((kind) => el("option", { value: kind }, DELETED[kind](ids[kind]))));
  const by = el("input", { type: "text", maxlength: 200, size: 12, value: kept("by", ""), placeholder: "your name" });
  const spot = el("div", { role: "status" });
  const send = (more) => tell("/delete", { [of.value]: ids[of.value], ...more });
  const button = (text, run, type) => el("button", { class: type || "more", type: "button", onclick: async ({ target }) => {
    target.disabled = true;
    try {
      await run();
    } catch (error) {
      spot.replaceChildren(el("p", { class: "bad", role: "alert" }, error.message), count());
    }
  } }, text);
  const count = () => button("Show the data", async () => asked(await send({ dry_run: true })));
  const first = () => spot.replaceChildren(count());
  const asked = ({ rows, sinks }) => {
    const held = Object.entries(rows).filter(([, size]) => size);
    const copies = sinks.length ? el("p", { class: "muted" }, `These destinations keep their copies: ${sinks.join(", ")}.`) : "";
    if (!held.length) { spot.replaceChildren(el("p", {}, "No stored data match."), count()); return; }
    spot.replaceChildren(el("ul", { class: "plain" }, held.map(([name, size]) => el("li", {}, rowsOf(name.replaceAll("_", " "), size)))), copies,
      el("p", {}, el("b", {}, "Delete this data? "), "You cannot undo this. ", button("Delete", remove, "more bad"), " ", button("Cancel", first, "link")));
  };
  const remove = async () => {
    keep("by", by.value);
    const { complete } = await send({ by: by.value });
    spot.replaceChildren(el("p", {}, complete ? "Deleted. " : "The deletion has begun, and the collector completes it. ", el("a", { href: "#/" }, "Overview")));
    answers.clear();
  };
  first();
  return el("details", { class: "deleting" }, el("summary", {}, "Delete"),
    el("form", { class: "filters", onsubmit: (event) => event.preventDefault() }, el("label", {}, "Data ", of), el("label", {}, "By ", by)), spot);
}
