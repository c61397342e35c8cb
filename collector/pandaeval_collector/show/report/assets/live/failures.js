// Failures by root cause: what has to be mended, how grave it is, how often and when it occurred last, and where to look.

const GRAVITY = ["critical", "high", "medium", "low"];
const FIRST_GROUPS = 5;
const LINKS = 5;

// The gravest first, of these the newest.
async function groups(query) {
  const { body } = await ask(`/failures?limit=1000${query.get("agent") ? `&agent=${encodeURIComponent(query.get("agent"))}` : ""}`);
  return [...body.items].sort((a, b) => GRAVITY.indexOf(a.severity) - GRAVITY.indexOf(b.severity) || b.last_at - a.last_at);
}

function groupRow(group) {
  // A title repeats the label and the beginning of what is told; one that a judge gave does not.
  const own = group.title.startsWith(`${group.label}:`) ? group.label.replaceAll("_", " ") : group.title;
  return el("div", { class: "why group" },
    el("div", {}, el("span", { class: `tag ${["critical", "high"].includes(group.severity) ? "fail" : ""}` }, group.severity), " ",
      el("b", {}, own), ` × ${number(group.occurrences)}`),
    el("div", {}, words(group.description)),
    el("div", { class: "muted" }, [group.metric.split(".").at(-1), group.agent, `last seen ${moment(group.last_at)} UTC`].filter(Boolean).join(" · ")),
    el("div", { class: "examples" }, el("span", { class: "muted" }, "Examples "), group.examples.slice(0, LINKS).map((example) => exampleLink(example))));
}

// A trace with the span that the result speaks of, or the session where the failure is that of a session.
function exampleLink(example) {
  const at = moment(example.at);
  const name = example.turn === null ? at : `turn ${example.turn + 1}, ${at}`;
  if (example.trace_id) return el("a", { href: `#/trace/${example.trace_id}${example.span_id ? `?span=${example.span_id}` : ""}`, title: example.reason }, name);
  return example.session_id ? el("a", { href: `#/session/${encodeURIComponent(example.session_id)}`, title: example.reason }, name) : null;
}

// Of the first page: the gravest few.
function causes(found, query) {
  if (!found.length) return null;
  const more = found.length - FIRST_GROUPS;
  const all = `#/failures${query.get("agent") ? `?agent=${encodeURIComponent(query.get("agent"))}` : ""}`;
  return [el("h2", {}, "Failures by root cause"), el("p", { class: "muted" }, "Since the store began, the gravest first."),
    el("section", { class: "card causes" }, found.slice(0, FIRST_GROUPS).map(groupRow)),
    more > 0 ? el("p", {}, el("a", { href: all }, `All ${number(found.length)} groups`)) : null];
}

// The page of all groups, or of the one that the address names.
async function failuresPage(query) {
  watched = null;
  said("");
  const wanted = query.get("group");
  const found = (await groups(query)).filter((group) => !wanted || group.id === wanted);
  const rows = el("section", { class: "card causes" });
  const more = paged(found, 3 * STEP, groupRow, rows);
  return [el("h1", {}, "Failures by root cause"), el("p", { class: "muted", role: "status" }, [
    found.length ? `${many(found.length, "group")}${query.get("agent") ? ` of ${query.get("agent")}` : ""}, since the store began, the gravest first. ` : wanted ? "This group is not kept any more. " : "Nothing failed with a label that says what went wrong. ",
    wanted || query.get("agent") ? el("a", { href: "#/failures" }, "All groups") : null]), found.length ? rows : null, more];
}
