// Shared by both pages: opens the data, shows the page of the address, and handles keys.

async function start() {
  header();
  try {
    await open();
  } catch (error) {
    document.getElementById("main").replaceChildren(el("p", { class: "notice" }, error.message));
    return;
  }
  headed();
  addEventListener("hashchange", () => show());
  addEventListener("keydown", keys);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawn);
  await show();
  document.documentElement.dataset.ready = "";
}

function header() {
  const theme = el("button", { class: "link", type: "button", title: "Light or dark", "aria-label": "Light or dark", onclick: () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    redrawn();
  } }, "◐");
  document.getElementById("top").append(el("a", { class: "brand", href: "#/" }, "pandaeval"), el("span", { class: "source" }),
    el("nav", { "aria-label": "Pages" }, NAVIGATION.map((name) => el("a", { href: `#/${name}` }, TITLES[name] || humane(name || "overview")))), el("span", { class: "made muted" }), theme);
}

function headed() {
  const said = heading();
  document.title = said.title;
  document.querySelector("#top .source").textContent = said.source;
  document.querySelector("#top .made").textContent = said.made;
}

function addressed() {
  return location.hash || "#/";
}

// Shows the page of the address. `quietly`: the same page again, with new data.
async function show(quietly) {
  const address = addressed();
  if (!address.startsWith("#/")) return;
  const [path, query] = address.slice(2).split("?");
  const [kind, at] = path.split("/");
  let made;
  isBroken = false;
  arrival = current = null;
  try {
    made = await pageOf(kind, at, new URLSearchParams(query));
  } catch (error) {
    isBroken = !error.expected;
    made = el("p", { class: "notice" }, `This page cannot be shown: ${error.message}. `, el("a", { href: "#/" }, "Overview"));
    if (!error.expected) console.error(error);
  }
  if (addressed() !== address) return; // another page was asked for meanwhile
  const main = document.getElementById("main");
  main.dataset.kind = kind;
  main.replaceChildren(...[made].flat(5).filter((node) => node !== null && node !== undefined && node !== false));
  for (const link of document.querySelectorAll("#top nav a")) {
    if (link.getAttribute("href").split("?")[0] === `#/${kind}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (quietly !== true) {
    scrollTo(0, 0);
    if (document.documentElement.dataset.ready === "") (searchNext && document.getElementById("search") || main).focus({ preventScroll: true });
    searchNext = false;
  }
  redrawn();
  const last = arrival;
  arrival = null;
  if (last) last();
  document.documentElement.dataset.page = address;
}

function noPage() {
  return el("p", { class: "notice" }, "There is no page at this address. ", el("a", { href: "#/" }, "Overview"));
}

let arrival = null;
let isBroken = false; // nobody answered: the page is shown again as soon as somebody does

// Runs a function after the page is in the document.
function onArrival(run) {
  arrival = run;
}

let searchNext = false; // the page that comes was asked for by the key of the search

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  if (event.key === "/") {
    event.preventDefault();
    const field = document.getElementById("search");
    searchNext = !field;
    if (field) { const fold = field.closest("details"); if (fold) fold.open = true; field.focus(); } else location.hash = "#/traces";
  }
  if (event.key === "?" && !document.querySelector("dialog")) keyHelp();
  if (current && !event.target.closest("dialog, .fall") && ["j", "k", "Escape"].includes(event.key)) steer(current, event.key);
  const link = ["n", "p"].includes(event.key) && document.querySelector(`[data-key="${event.key}"]`);
  if (link) link.click();
}
