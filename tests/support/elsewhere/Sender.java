import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Scope;

/** Runs an agent so many times, for the Java agent to send, and prints each span's trace id and span id. */
public class Sender {
    public static void main(String[] arguments) throws Exception {
        Tracer tracer = GlobalOpenTelemetry.getTracer("sender");
        for (int number = 0; number < Integer.parseInt(arguments[0]); number++) {
            Span agent = tracer.spanBuilder("invoke_agent shop").setAttribute("gen_ai.operation.name", "invoke_agent")
                .setAttribute("gen_ai.agent.name", "shop").startSpan();
            try (Scope scope = agent.makeCurrent()) {
                Span tool = tracer.spanBuilder("execute_tool find").setAttribute("gen_ai.operation.name", "execute_tool")
                    .setAttribute("gen_ai.tool.name", "find").startSpan();
                tell(tool);
            }
            tell(agent);
            Thread.sleep(10);
        }
    }

    private static void tell(Span span) {
        span.end();
        System.out.println(span.getSpanContext().getTraceId() + " " + span.getSpanContext().getSpanId());
    }
}
