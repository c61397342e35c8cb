// Elements and words. Text enters the page only through textContent, so text of a trace never becomes markup.

function el(tag, props, ...kids) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) made.style.setProperty(name, value);
    else if (name === "class") made.className = value;
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...kids.flat(4).filter((kid) => kid !== null && kid !== undefined && kid !== false));
  return made;
}

const NUMBER = new Intl.NumberFormat("en");

function number(value) {
  return NUMBER.format(value);
}

function many(count, what, plural) {
  return `${number(count)} ${count === 1 ? what : plural || what + "s"}`;
}

function score(value) {
  return value === null || value === undefined ? "–" : value.toFixed(2);
}

function percent(share) {
  if (share > 0.995 && share < 1) return "over 99 %";
  return `${Math.round(share * 100)} %`;
}

function duration(us) {
  if (us < 1000) return `${us} µs`;
  if (us < 1e6) return `${(us / 1e3).toFixed(us < 1e4 ? 1 : 0)} ms`;
  if (us < 120e6) return `${(us / 1e6).toFixed(us < 1e7 ? 2 : 1)} s`;
  if (us < 7200e6) return `${Math.floor(us / 60e6)} min ${Math.round((us % 60e6) / 1e6)} s`;
  return `${(us / 3600e6).toFixed(1)} h`;
}

// UTC, as in collectors and logs.
function moment(ms, withDay) {
  const text = new Date(ms).toISOString();
  return withDay === false ? text.slice(11, 19) : `${text.slice(0, 10)} ${text.slice(11, 19)}`;
}

// A text that the report may have cut. A note replaces the missing part.
function words(text, loose) {
  if (typeof text === "string") return marked(text, loose);
  const missing = text.n - text.h.length - text.t.length;
  return [marked(text.h, loose), el("span", { class: "cut" }, ` … ${number(missing)} of ${number(text.n)} characters left out … `), marked(text.t, loose)];
}

// A block of text that keeps its line ends. A long text is folded. `loose`: values to mark; `isWhole`: fold only a very long
// text.
function block(text, label, extra, loose, isWhole) {
  const whole = typeof text === "string" ? text : text.h + text.t;
  const long = whole.length > (isWhole ? 6000 : 700) || whole.split("\n").length > (isWhole ? 100 : 12);
  const body = el("div", { class: `text ${long ? "folded" : ""}`, dir: "auto" }, words(text, loose));
  const button = long && el("button", {
    class: "link", type: "button", "aria-expanded": "false",
    onclick: () => {
      const folded = body.classList.toggle("folded");
      button.textContent = folded ? "Show all" : "Show less";
      button.setAttribute("aria-expanded", String(!folded));
    },
  }, "Show all");
  return el("div", { class: `block ${extra || ""}` }, label && el("div", { class: "label" }, label), body, button);
}

function notCaptured(label, why) {
  return el("div", { class: "block" }, el("div", { class: "label" }, label), el("div", { class: "text none" }, why || "not captured"));
}

// A list that grows by pages, so that the document never contains thousands of rows.
function paged(items, size, make, into) {
  let shown = 0;
  const more = el("button", { class: "more", type: "button" });
  const grow = () => {
    const next = items.slice(shown, shown + size).map((item, at) => make(item, shown + at));
    into.append(...next);
    shown += next.length;
    more.hidden = shown >= items.length;
    more.textContent = `Show ${number(Math.min(size, items.length - shown))} more of ${number(items.length)}`;
    return next[0];
  };
  more.addEventListener("click", () => {
    const first = grow();
    const target = first && (first.matches("a, button") ? first : first.querySelector("a, button"));
    if (target) target.focus();
  });
  grow();
  return more;
}
