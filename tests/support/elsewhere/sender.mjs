// Runs an agent so many times, with the JavaScript SDK, and prints each span's trace id and span id.
import { context, trace } from "@opentelemetry/api";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";

const [count, protocol] = process.argv.slice(2);
const { OTLPTraceExporter } = await import(`@opentelemetry/exporter-trace-otlp-${protocol}`);
const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] });
provider.register();
const tracer = provider.getTracer("sender");

function tell(span) {
  span.end();
  console.log(span.spanContext().traceId, span.spanContext().spanId);
}

for (let number = 0; number < Number(count); number++) {
  const agent = tracer.startSpan("invoke_agent shop", {
    attributes: { "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop" },
  });
  const attributes = { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find" };
  tell(tracer.startSpan("execute_tool find", { attributes }, trace.setSpan(context.active(), agent)));
  tell(agent);
  await new Promise((resolve) => setTimeout(resolve, 10));
}
await provider.shutdown();
