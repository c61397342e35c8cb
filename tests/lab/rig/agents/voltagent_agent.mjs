// VoltAgent with its own spans. The job brings the tools' schemas and their recorded results.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { Agent, createTool, createVoltAgentObservability } from '@voltagent/core';
import { z } from 'zod';

const job = JSON.parse(process.env.RIG_JOB);
const openai = createOpenAICompatible({ name: 'openai', baseURL: job.base_url, apiKey: 'none', includeUsage: true });
const observability = createVoltAgentObservability({
  serviceName: process.env.OTEL_SERVICE_NAME,
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
});
const tools = job.tools.map(({ name, description, parameters }) =>
  createTool({
    name,
    description,
    parameters: z.object(Object.fromEntries(Object.keys(parameters.properties).map((key) => [key, z.string()]))),
    execute: async (input) => {
      const { result, error } = job.results[`${name} ${JSON.stringify(input)}`];
      if (error) throw new Error(error);
      return result;
    },
  }),
);
const agent = new Agent({
  name: job.agent,
  instructions: job.instructions,
  model: openai.chatModel('gpt-4o-mini'),
  tools,
  observability,
  maxSteps: 20,
  maxRetries: 0,
});

try {
  for (const text of job.turns) {
    const answer = await agent.generateText(text, { userId: 'customer', conversationId: job.session });
    console.log(answer.text);
  }
} finally {
  await observability.shutdown();
}
process.exit(); // its timers would hold it
