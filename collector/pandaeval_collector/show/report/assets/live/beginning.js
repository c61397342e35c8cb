// The page of a collector without data: commands to run, with the address of this collector.

const PYTHON = (imports, line) => `from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from pandaeval_otel import PandaEvalSpanProcessor
${imports ? `${imports}\n` : ""}
provider = TracerProvider()
provider.add_span_processor(PandaEvalSpanProcessor())
trace.set_tracer_provider(provider)
${line}`.trim();
const GENAI = ["OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY"];
// By name: variables that capture content, and code that starts the instrumentation.
const FRAMEWORKS = {
  "Any OpenTelemetry SDK": [GENAI],
  LangGraph: [[...GENAI, "LANGSMITH_TRACING=false"], "from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor", "LangChainInstrumentor().instrument()"],
  "OpenAI Agents": [[], "from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor", "OpenAIAgentsInstrumentor().instrument()"],
  "Pydantic AI": [[], "from pydantic_ai import Agent", "Agent.instrument_all()"],
  OpenAI: [GENAI, "from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor", "OpenAIInstrumentor().instrument()"],
  Anthropic: [GENAI, "from opentelemetry.instrumentation.genai.anthropic import AnthropicInstrumentor", "AnthropicInstrumentor().instrument()"],
  CrewAI: [["CREWAI_DISABLE_TELEMETRY=true"], "from openinference.instrumentation.crewai import CrewAIInstrumentor", "CrewAIInstrumentor().instrument(tracer_provider=provider)"],
  Strands: [[], "", ""],
  "Google ADK": [GENAI, "", ""],
};

function beginning() {
  const into = el("div", {});
  const show = (name) => {
    const [settings, imports, line] = FRAMEWORKS[name];
    const code = imports === undefined || whole.grpc_port === null ? null : PYTHON(imports, line);
    const lines = code ? [`PANDAEVAL_ENDPOINT=${location.hostname}:${whole.grpc_port}`, ...settings] : [`OTEL_EXPORTER_OTLP_ENDPOINT=${location.origin}`, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", ...settings];
    into.replaceChildren(el("h3", {}, "In the agent's environment"), copied(lines.map((line) => `export ${line}`).join("\n"), true), ...(code ? [el("h3", {}, "Where the agent starts"), copied(code, true)] : []));
  };
  show(Object.keys(FRAMEWORKS)[0]);
  return el("section", { class: "card beginning" }, el("h2", {}, "Send the first trace"),
    el("label", {}, "Framework ", el("select", { onchange: (event) => show(event.target.value) }, Object.keys(FRAMEWORKS).map((name) => el("option", { value: name }, name)))), into,
    el("p", { class: "muted" }, "A trace appears about 10 seconds after its root span, if it contains the work of an agent. /metrics (port 4329) counts received spans as pandaeval_spans_total, and the log lists problems. More frameworks: docs/start/python.md."));
}
