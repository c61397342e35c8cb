// Mastra with its OpenTelemetry exporter. The job brings the tools' schemas and their recorded results.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Agent } from '@mastra/core/agent';
import { Mastra } from '@mastra/core/mastra';
import { createTool } from '@mastra/core/tools';
import { Observability } from '@mastra/observability';
import { OtelExporter } from '@mastra/otel-exporter';
import { z } from 'zod';

const job = JSON.parse(process.env.RIG_JOB);
const openai = createOpenAICompatible({ name: 'openai', baseURL: job.base_url, apiKey: 'none', includeUsage: true });

const tools = Object.fromEntries(
  job.tools.map(({ name, description, parameters }) => [
    name,
    createTool({
      id: name,
      description,
      inputSchema: z.object(Object.fromEntries(Object.keys(parameters.properties).map((key) => [key, z.string()]))),
      execute: async (input) => {
        const { result, error } = job.results[`${name} ${JSON.stringify(input)}`];
        if (error) throw new Error(error);
        return result;
      },
    }),
  ]),
);
const endpoint = `${process.env.OTEL_EXPORTER_OTLP_ENDPOINT}/v1/traces`;
const exporter = new OtelExporter({ provider: { custom: { endpoint, protocol: 'http/protobuf' } } });
const observability = new Observability({
  configs: { otel: { serviceName: process.env.OTEL_SERVICE_NAME, exporters: [exporter] } },
});
const desk = new Agent({
  id: job.agent,
  name: job.agent,
  instructions: job.instructions,
  model: openai.chatModel('gpt-4o-mini'),
  tools,
  maxRetries: 0,
});
const mastra = new Mastra({ agents: { desk }, observability, logger: false });

try {
  const messages = [];
  for (const content of job.turns) {
    messages.push({ role: 'user', content });
    const answer = await mastra.getAgent('desk').generate(messages, {
      maxSteps: 20,
      tracingOptions: { metadata: { sessionId: job.session } },
    });
    if (answer.error) throw answer.error;
    messages.push({ role: 'assistant', content: answer.text });
    console.log(answer.text);
  }
} finally {
  await observability.shutdown();
}
