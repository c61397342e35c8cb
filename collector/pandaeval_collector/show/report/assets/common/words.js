// Display names of labels, metrics and times.

const SAID = {
  false_success: "Claimed success after a failed call", error: "Crash or error text", "run failed": "Crash", loop: "Loop", empty_answer: "Empty answer", control_token: "Control token as answer",
  dangling_tool_call: "Ends in a tool call", truncated: "Answer cut off", unrecovered_tool_error: "Tool failed without recovery", made_up_value: "Made-up value", contradicts_calls: "Contradicts a tool call", no_content: "No content captured",
  coherence: "Off topic", forbidden_action: "Forbidden action", false_statement: "False statement", missing_thing: "Request not done", wrong_thing: "Wrong thing", needless_refusal: "Needless refusal", loop_detection: "Repeats an answer",
};

// Results that explain other scores, and neither pass nor fail.
function isExplaining(key) {
  return key === "trace.blame";
}

function humane(text) {
  if (SAID[text]) return SAID[text];
  const plain = text.replaceAll("_", " ");
  return plain.charAt(0).toUpperCase() + plain.slice(1);
}

// Distance from `now`, such as `3 min ago`.
function ago(ms, now = Date.now()) {
  const s = Math.max(0, (now - ms) / 1000);
  if (s < 45) return "now";
  if (s < 5400) return `${Math.max(1, Math.round(s / 60))} min ago`;
  if (s < 129600) return `${Math.round(s / 3600)} h ago`;
  return s < 172800 ? "yesterday" : `${Math.round(s / 86400)} days ago`;
}

// A moment in words, with the exact time as a tooltip.
function when(ms) {
  return el("time", { datetime: new Date(ms).toISOString(), title: `${moment(ms)} UTC` }, relative() ? ago(ms) : moment(ms).slice(5, 16));
}

function compact(value) {
  return value < 1000 ? String(Math.round(value)) : value < 1e6 ? `${(value / 1e3).toFixed(value < 1e4 ? 1 : 0)}k` : `${(value / 1e6).toFixed(1)}M`;
}

function dollars(value) {
  return value === 0 || value >= 0.01 ? `$${value.toFixed(2)}` : `$${value.toFixed(4)}`;
}

// A cost in dollars; with a note if the price of some calls is unknown, and empty if nothing is known.
function costOf(usd, unpriced) {
  const known = usd === null || usd === undefined ? "" : dollars(usd);
  return unpriced ? (known ? `at least ${known}` : "cost unknown") : known;
}

// Level of a heat scale, from 0 (worst) to 4 (best).
function heat(value) {
  return value >= 0.9 ? 4 : value >= 0.7 ? 3 : value >= 0.5 ? 2 : value >= 0.25 ? 1 : 0;
}

// A text whose settings (`NAME=value`) can be copied one by one.
function withSettings(text) {
  return text.split(/(\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+=[\w*]+)/).map((part, at) => (at % 2 ? copied(part) : part));
}

function copied(text, whole) {
  const button = el("button", { class: "copy", type: "button", "aria-label": `Copy ${whole ? "these lines" : text}`, onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(held); // a page that is not on localhost or under TLS may not write there
      button.textContent = "selected";
    }
  } }, "copy");
  const held = el("code", {}, text);
  return whole ? el("div", { class: "snippet" }, button, el("pre", { tabindex: "0" }, held)) : el("span", { class: "setting" }, held, button);
}
