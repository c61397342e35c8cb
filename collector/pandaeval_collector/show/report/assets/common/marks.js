// Marks values without a source (grounding) in texts. Suspects are grey.

// By span id: {value, argument, suspect, why} of each. `results`: pairs of a result and its full data.
function looseOf(results) {
  const found = new Map();
  for (const [, full] of results) {
    for (const kind of ["not_grounded", "suspect"]) {
      const held = full.metadata && full.metadata[kind];
      for (const each of Array.isArray(held) ? held : []) {
        if (!each || typeof each.value !== "string" || !each.value) continue;
        const why = each.but ? `The text states ${each.value}, but ${each.but}` : `${each.value} does not appear in any tool result or user message`;
        const at = each.call_span_id || each.span_id, known = found.get(at) || [];
        found.set(at, [...known, { value: each.value, argument: each.argument !== undefined, suspect: kind === "suspect", why }]);
      }
    }
  }
  return found;
}

// Values in answers. Values in arguments are marked on their calls.
function looseAnswers(loose) {
  return [...loose.values()].flat().filter((each) => !each.argument);
}

// The text with a mark around each value that is a separate word.
function marked(text, loose) {
  if (!loose || !loose.length) return [text];
  const escaped = (value) => value.trim().replace(/[\^$\\.*+?()[\]{}|/]/g, "\\$&").replace(/\s+/g, "\\s+");
  const longest = [...loose].sort((a, b) => b.value.length - a.value.length);
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(?:${longest.map((each) => `(${escaped(each.value)})`).join("|")})(?![\\p{L}\\p{N}])(?![.,]\\d)`, "giu");
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    const at = longest.findIndex((_, place) => match[place + 1] !== undefined);
    parts.push(text.slice(end, match.index), el("mark", { class: longest[at].suspect ? "suspect" : "loose", title: longest[at].why }, match[0]));
    end = match.index + match[0].length;
  }
  return [...parts, text.slice(end)];
}
