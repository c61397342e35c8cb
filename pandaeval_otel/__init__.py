"""pandaeval_otel knows what happened: it turns GenAI spans of any instrumentation into traces and sessions."""
