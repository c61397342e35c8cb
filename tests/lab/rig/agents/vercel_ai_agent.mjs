// The Vercel AI SDK with its experimental telemetry, from release 7 on with @ai-sdk/otel. The job brings the tools' schemas and their recorded results.
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { defaultResource, detectResources, envDetector } from '@opentelemetry/resources';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import * as ai from 'ai';

const { generateText, jsonSchema, stepCountIs, streamText, tool } = ai;
const job = JSON.parse(process.env.RIG_JOB);
const provider = new NodeTracerProvider({
  resource: defaultResource().merge(detectResources({ detectors: [envDetector] })),
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter(), { scheduledDelayMillis: 200 })],
});
provider.register();
const integration = await import('@ai-sdk/otel').catch(() => undefined);
if (integration) ai.registerTelemetry(new integration.OpenTelemetry());

function execute(name, input) {
  const { result, error } = job.results[`${name} ${JSON.stringify(input)}`];
  if (error) throw new Error(error);
  return result;
}

const tools = Object.fromEntries(
  job.tools.map(({ name, description, parameters }) => [
    name,
    tool({ description, inputSchema: jsonSchema(parameters), execute: async (input) => execute(name, input) }),
  ]),
);
const openai = createOpenAICompatible({ name: 'openai', baseURL: job.base_url, apiKey: 'none', includeUsage: true });
const settings = {
  model: openai.chatModel('gpt-4o-mini'),
  system: job.instructions,
  tools,
  stopWhen: stepCountIs(20),
  maxRetries: 0,
  [integration ? 'telemetry' : 'experimental_telemetry']: { isEnabled: true, functionId: job.agent, metadata: { sessionId: job.session } },
};

async function answer(messages) {
  if (!job.streamed) return await generateText({ ...settings, messages });
  const streamed = streamText({ ...settings, messages });
  await streamed.consumeStream();
  return { text: await streamed.text, response: await streamed.response };
}

try {
  const messages = [];
  for (const content of job.turns) {
    messages.push({ role: 'user', content });
    const { text, response } = await answer(messages);
    messages.push(...response.messages);
    console.log(text);
  }
} finally {
  await provider.shutdown();
}
