// The desk's tools as an MCP server on standard input and output, for agents that bring no tools of their own language.
import { createInterface } from 'node:readline';

const job = JSON.parse(process.env.RIG_JOB);

function call({ name, arguments: input }) {
  const { result, error } = job.results[`${name} ${JSON.stringify(input)}`] ?? { error: `No such call: ${name}` };
  return { content: [{ type: 'text', text: error ?? JSON.stringify(result) }], ...(error ? { isError: true } : {}) };
}

const METHODS = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'desk', version: '1.0.0' },
  }),
  ping: () => ({}),
  'tools/list': () => ({
    tools: job.tools.map(({ name, description, parameters }) => ({ name, description, inputSchema: parameters })),
  }),
  'tools/call': call,
};

for await (const line of createInterface({ input: process.stdin })) {
  if (!line.trim()) continue;
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue; // a notification
  const answer = METHODS[method]
    ? { result: METHODS[method](params ?? {}) }
    : { error: { code: -32601, message: `No such method: ${method}` } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...answer })}\n`);
}
