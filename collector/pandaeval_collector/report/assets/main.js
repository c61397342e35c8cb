// What the page does: opens the data, shows what the address names, and listens to a few keys.

async function start() {
  header();
  try {
    await open();
  } catch (error) {
    document.getElementById("main").replaceChildren(el("p", { class: "notice" }, `The report cannot be read: ${error}. It needs a browser from 2023 or newer, and the whole file.`));
    return;
  }
  document.title = `${sources()} – pandaeval report`;
  document.querySelector("#top .source").textContent = sources();
  document.querySelector("#top .made").textContent = `made ${moment(Date.parse(store.index.about.made_at))} UTC${store.index.about.version ? `, pandaeval-otel ${store.index.about.version}` : ""}`;
  addEventListener("hashchange", show);
  addEventListener("keydown", keys);
  addEventListener("beforeprint", () => { document.documentElement.dataset.print = ""; drawCharts(); });
  addEventListener("afterprint", () => { delete document.documentElement.dataset.print; drawCharts(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawCharts);
  await show();
  document.documentElement.dataset.ready = "";
}

function sources() {
  const names = store.index.about.sources;
  return names.slice(0, 3).join(", ") + (names.length > 3 ? ` and ${number(names.length - 3)} more` : "");
}

function header() {
  const theme = el("button", { class: "link", type: "button", title: "Light or dark", "aria-label": "Light or dark", onclick: () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    drawCharts();
  } }, "◐");
  document.getElementById("top").append(el("a", { class: "brand", href: "#/" }, "pandaeval"), el("span", { class: "source" }),
    el("nav", { "aria-label": "Pages" }, el("a", { href: "#/" }, "Overview"), el("a", { href: "#/traces" }, "Traces")), el("span", { class: "made muted" }), theme);
}

// Addresses: #/ , #/traces?… , #/s/<session> , #/t/<trace>.
async function show() {
  const address = location.hash || "#/";
  if (!address.startsWith("#/")) return;
  const [path, query] = address.slice(2).split("?");
  const [kind, at] = path.split("/");
  let made;
  try {
    made = await pageOf(kind, at, query);
  } catch (error) {
    made = el("p", { class: "notice" }, `This page cannot be shown: ${error}. `, el("a", { href: "#/" }, "Overview"));
    console.error(error);
  }
  if ((location.hash || "#/") !== address) return; // another page was asked for meanwhile
  const main = document.getElementById("main");
  main.replaceChildren(...[made].flat(5).filter((node) => node !== null && node !== undefined && node !== false));
  for (const link of document.querySelectorAll("#top nav a")) {
    if (link.getAttribute("href") === `#/${kind}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  scrollTo(0, 0);
  if (document.documentElement.dataset.ready === "") (searchNext && document.getElementById("search") || main).focus({ preventScroll: true });
  searchNext = false;
  drawCharts();
  document.documentElement.dataset.page = address;
}

async function pageOf(kind, at, query) {
  const { sessions, traces } = store.index;
  if (kind === "s" && sessions[at]) return sessionPage(sessions[at]);
  if (kind === "t" && traces[at]) return tracePage(traces[at]);
  return kind === "traces" ? tracesPage(new URLSearchParams(query)) : overview();
}

let searchNext = false; // the page that comes was asked for by the key of the search

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  if (event.key === "/") {
    event.preventDefault();
    const field = document.getElementById("search");
    searchNext = !field;
    if (field) field.focus(); else location.hash = "#/traces";
  }
  const link = ["n", "p"].includes(event.key) && document.querySelector(`[data-key="${event.key}"]`);
  if (link) link.click();
}
