// The Strands SDK for TypeScript with its own telemetry. The job brings the tools' schemas and their recorded results.
import { Agent, tool } from '@strands-agents/sdk';
import { OpenAIModel } from '@strands-agents/sdk/models/openai';
import { setupTracer } from '@strands-agents/sdk/telemetry';
import { z } from 'zod';

const job = JSON.parse(process.env.RIG_JOB);
const provider = setupTracer({ exporters: { otlp: true } });
const tools = job.tools.map(({ name, description, parameters }) =>
  tool({
    name,
    description,
    inputSchema: z.object(Object.fromEntries(Object.keys(parameters.properties).map((key) => [key, z.string()]))),
    callback: (input) => {
      const { result, error } = job.results[`${name} ${JSON.stringify(input)}`];
      if (error) throw new Error(error);
      return result;
    },
  }),
);
const model = new OpenAIModel({
  api: 'chat',
  modelId: 'gpt-4o-mini',
  apiKey: 'none',
  clientConfig: { baseURL: job.base_url, maxRetries: 0 },
});
const agent = new Agent({
  name: job.agent,
  model,
  systemPrompt: job.instructions,
  tools,
  printer: false,
  traceAttributes: { 'session.id': job.session },
});

try {
  for (const text of job.turns) console.log(String(await agent.invoke(text)));
} finally {
  await provider.shutdown();
}
