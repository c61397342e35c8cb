// Agents, hand-offs and tools of some traces as a graph, with counts, durations, costs and failures.

const BOX = { wide: 262, high: 42, gap: 12, step: 330, narrow: 22 };

// Nodes and edges of traces. `parts`: {id, spans} of each; `name`: of an agent without a span of its own.
function graphOf(parts, name) {
  const nodes = new Map([["user", { key: "user", kind: "user", name: "user", times: 0, bad: 0, us: 0, tokens: 0, usd: 0, spot: null }]]), edges = new Map();
  const node = (kind, called) => {
    const key = `${kind} ${called}`;
    if (!nodes.has(key)) nodes.set(key, { key, kind, name: called, times: 0, bad: 0, us: 0, tokens: 0, usd: 0, spot: null });
    return nodes.get(key);
  };
  const edge = (from, to, bad) => {
    const held = edges.get(`${from.key}\n${to.key}`) || { from, to, times: 0, bad: 0 };
    edges.set(`${from.key}\n${to.key}`, { ...held, times: held.times + 1, bad: held.bad + bad });
  };
  for (const { id, spans } of parts.filter((part) => part.spans)) {
    const owner = spans.map(() => null), last = new Map();
    spans.forEach((row, at) => {
      const above = row.up >= 0 ? owner[row.up] : null, bad = row.error === undefined ? 0 : 1;
      const used = (held) => {
        Object.assign(held, { times: held.times + 1, bad: held.bad + bad, us: held.us + row.us });
        if (!held.spot || (bad && !held.spot.bad)) held.spot = { id, span: row.id, bad };
      };
      owner[at] = above;
      if (row.kind === "agent" && !(above && above.name === (row.agent || row.name))) {
        const own = node("agent", row.agent || row.name), before = last.get(row.up);
        used(own);
        edge(above || (before !== own && before) || nodes.get("user"), own, bad);
        owner[at] = own;
        if (!above) last.set(row.up, own);
      } else if (row.tool) {
        const tool = node("tool", row.tool);
        used(tool);
        edge(above || unspanned(row), tool, bad);
      }
      if (row.kind === "llm" && (row.tokens || row.usd)) {
        const own = above || unspanned(row);
        own.tokens += sum(row.tokens || []);
        own.usd += row.usd || 0;
      }
    });
  }
  function unspanned(row) {
    const own = node("agent", row.agent || name || "agent");
    if (!edges.has(`user\n${own.key}`)) edges.set(`user\n${own.key}`, { from: nodes.get("user"), to: own, times: 0, bad: 0 });
    return own;
  }
  return { nodes: [...nodes.values()], edges: [...edges.values()] };
}

// Rows and columns: each node is next to the first node that leads to it. `isNarrow`: nodes are below each other.
function layoutOf({ nodes, edges }, isNarrow) {
  const places = new Map(), tree = new Set();
  let line = 0;
  const put = (node, depth) => {
    places.set(node.key, { depth, line });
    let isFirst = true;
    for (const each of edges.filter(({ from }) => from === node)) {
      if (places.has(each.to.key)) continue;
      if (isNarrow || !isFirst) line += 1;
      isFirst = false;
      tree.add(each);
      put(each.to, depth + 1);
    }
  };
  put(nodes[0], 0);
  for (const node of nodes) if (!places.has(node.key)) { line += 1; put(node, 1); }
  const x = (place) => place.depth * (isNarrow ? BOX.narrow : BOX.step), y = (place) => place.line * (BOX.high + BOX.gap);
  return { at: (node) => ({ x: x(places.get(node.key)) + 2, y: y(places.get(node.key)) + 2 }), tree, high: (line + 1) * (BOX.high + BOX.gap), wide: Math.max(...[...places.values()].map(x)) + BOX.wide + 4 };
}

function svg(tag, props, ...kids) {
  const made = document.createElementNS(["http:", "", "www.w3.org", "2000", "svg"].join("/"), tag);
  for (const [name, value] of Object.entries(props)) if (value !== null && value !== false) made.setAttribute(name, String(value));
  made.append(...kids.flat(2).filter(Boolean));
  return made;
}

function factsOf({ kind, times, bad, us, tokens, usd }) {
  return [times && many(times, kind === "agent" ? "run" : "call"), bad && `✗ ${number(bad)} failed`, us && duration(us), tokens && `${compact(tokens)} tok`, usd && dollars(usd)].filter(Boolean).join(" · ");
}

function shortened(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function boxOf(node, { x, y }) {
  const facts = factsOf(node), label = `${node.kind === "user" ? "" : `${node.kind} `}${node.name}`;
  const inside = [svg("title", {}, `${label}${facts ? `: ${facts}` : ""}`), svg("rect", { x, y, width: BOX.wide, height: BOX.high, rx: node.kind === "tool" ? 3 : 20 }),
    svg("text", { x: x + 14, y: y + (facts ? 17 : 26), class: "name" }, node.bad ? "✗ " : "", shortened(label, 34)), facts && svg("text", { x: x + 14, y: y + 33, class: "facts" }, shortened(facts, 50))];
  const href = node.spot && traceHref(node.spot.id) && `${traceHref(node.spot.id)}?span=${node.spot.span}`;
  const own = { class: `node ${node.kind} ${node.bad ? "bad" : ""}` };
  return href ? svg("a", { ...own, href }, inside) : svg("g", own, inside);
}

// `isTree`: whether the target is next to or below the source; other edges are dashed.
function lineBetween(each, from, to, isTree, isNarrow) {
  const half = BOX.high / 2, end = { x: to.x, y: to.y + half };
  const start = isNarrow ? { x: from.x + 10, y: from.y + BOX.high } : { x: from.x + BOX.wide, y: from.y + half };
  const bend = Math.max(24, (end.x - start.x) / 2);
  const path = isNarrow ? `M${start.x} ${start.y} C${start.x} ${end.y} ${start.x} ${end.y} ${end.x} ${end.y}` : `M${start.x} ${start.y} C${start.x + bend} ${start.y} ${end.x - bend} ${end.y} ${end.x} ${end.y}`;
  return svg("g", { class: `edge ${each.bad ? "bad" : ""} ${isTree ? "" : "again"}` }, svg("title", {}, `${each.from.name} → ${each.to.name}: ${many(each.times, "time")}${each.bad ? `, ${number(each.bad)} failed` : ""}`), svg("path", { d: path }),
    !isNarrow && each.times ? svg("text", { x: end.x - 8, y: end.y - 6, class: "times" }, `×${number(each.times)}`) : null);
}

// A folded section with the graph; empty if a single agent called no tool. `note`: names the traces.
function agentGraph(parts, name, note) {
  const graph = graphOf(parts, name);
  if (graph.nodes.length < 3) return null;
  const isNarrow = innerWidth < 720, layout = layoutOf(graph, isNarrow), agents = graph.nodes.filter(({ kind }) => kind === "agent").length, failed = graph.nodes.filter(({ bad }) => bad).length;
  const drawn = svg("svg", { viewBox: `0 0 ${layout.wide} ${layout.high}`, width: layout.wide, height: layout.high, role: "group", "aria-label": "Agents, hand-offs and tools" },
    graph.edges.map((each) => lineBetween(each, layout.at(each.from), layout.at(each.to), layout.tree.has(each), isNarrow)), graph.nodes.map((node) => boxOf(node, layout.at(node))));
  return el("details", { class: "card graph", open: agents > 1 || failed > 0 }, el("summary", {}, `Agents and tools: ${many(agents, "agent")}, ${many(graph.nodes.length - agents - 1, "tool")}`, failed ? el("b", { class: "bad" }, `, ✗ ${number(failed)} with failures`) : null, note ? el("span", { class: "muted" }, ` ${note}`) : null),
    el("div", { class: "scroll", tabindex: "0" }, drawn));
}
