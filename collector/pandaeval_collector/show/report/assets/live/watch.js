// Polls for new results while a list is visible. Shows them at once, or offers them if the user is busy.

const LOOK_MS = 10_000;
let watched = null; // the list that is shown: {path, newest, grown}
let looking = null;

function watch() {
  document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); else clearTimeout(looking); });
  next();
}

function next() {
  clearTimeout(looking);
  if (!document.hidden) looking = setTimeout(look, LOOK_MS);
}

async function look() {
  const list = watched;
  if (isBroken) {
    await ask("/overview").then(() => show(true), (error) => said(`the collector does not answer: ${error.message}`, true));
  } else if (list) {
    try {
      whole = (await ask("/overview")).body;
      warned();
      const { body, changed } = await ask(list.path);
      said(`live · ${moment(Date.now(), false)} UTC`);
      if (changed && list === watched) await offer(list, body);
    } catch (error) {
      said(`the collector does not answer: ${error.message}`, true);
    }
  } else {
    said("");
  }
  next();
}

async function offer(list, body) {
  if (undisturbed(list)) return show(true);
  const fresh = body.newest - list.newest;
  const button = el("button", { class: "fresh", type: "button", onclick: () => { scrollTo(0, 0); show(true); } },
    fresh > 0 ? `${many(fresh, "new result")}: show` : "Show what changed");
  const known = document.querySelector(".fresh");
  if (known) known.replaceWith(button); else document.getElementById("main").prepend(button);
}

// Whether the user is neither reading further down, nor typing, nor selecting text.
function undisturbed(list) {
  const held = document.activeElement;
  const free = !held || held === document.body || held.id === "main";
  return free && scrollY < 80 && !list.grown && !document.querySelector("main details[open]:not(.filtering)") && getSelection().isCollapsed;
}

function said(text, bad) {
  const line = document.querySelector("#top .made");
  line.textContent = text;
  line.classList.toggle("bad", bad === true);
}
