// The Vercel AI SDK with the provider's own tools beside one of the desk's. RIG_PROVIDER: anthropic, openai.
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { defaultResource, detectResources, envDetector } from '@opentelemetry/resources';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';

const job = JSON.parse(process.env.RIG_JOB);
const provider = new NodeTracerProvider({
  resource: defaultResource().merge(detectResources({ detectors: [envDetector] })),
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter(), { scheduledDelayMillis: 200 })],
});
provider.register();

const { name, description, parameters } = job.tools.find((each) => each.name === 'search_catalogue');
const own = {
  [name]: tool({
    description,
    inputSchema: jsonSchema(parameters),
    execute: async (input) => job.results[`${name} ${JSON.stringify(input)}`].result,
  }),
};

function provided() {
  if (process.env.RIG_PROVIDER === 'anthropic') {
    const anthropic = createAnthropic({ baseURL: `${job.model_root}/v1`, apiKey: 'none' });
    return [
      anthropic('claude-sonnet-4-5'),
      { web_search: anthropic.tools.webSearch_20250305({}), code_execution: anthropic.tools.codeExecution_20250522({}) },
    ];
  }
  const openai = createOpenAI({ baseURL: job.base_url, apiKey: 'none' });
  const server = { serverLabel: 'sports', serverUrl: 'https://races.example/mcp', requireApproval: 'never' };
  return [
    openai.responses('gpt-5-mini'),
    {
      web_search: openai.tools.webSearch({}),
      code_interpreter: openai.tools.codeInterpreter({}),
      file_search: openai.tools.fileSearch({ vectorStoreIds: ['vs_rules'] }),
      mcp: openai.tools.mcp(server),
    },
  ];
}

const [model, hosted] = provided();
const settings = {
  model,
  system: job.instructions,
  tools: { ...hosted, ...own },
  stopWhen: stepCountIs(20),
  maxRetries: 0,
  experimental_telemetry: { isEnabled: true, functionId: job.agent, metadata: { sessionId: job.session } },
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
