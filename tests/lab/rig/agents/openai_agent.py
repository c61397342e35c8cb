"""The OpenAI client with a manual tool loop and own spans.

``RIG_INSTRUMENTATION``: genai, openinference, openllmetry.
"""

import json
import os

from common import DESK, JOB, MODEL, telemetry, told
from openai import OpenAI
from opentelemetry import trace

FUNCTIONS = {function.__name__: function for function in DESK.tools}
TOOLS = [{"type": "function", "function": schema} for schema in JOB["tools"]]


def instrument():
    match os.environ["RIG_INSTRUMENTATION"]:
        case "genai":
            from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
        case "openinference":
            from openinference.instrumentation.openai import OpenAIInstrumentor
        case "openllmetry":
            from opentelemetry.instrumentation.openai import OpenAIInstrumentor
    OpenAIInstrumentor().instrument()


def completed(client, messages):
    """Return the message of a model call, streamed or not."""
    request = {"model": MODEL, "messages": messages, "tools": TOOLS}
    if JOB["streamed"]:
        with client.chat.completions.stream(**request, stream_options={"include_usage": True}) as stream:
            for _ in stream:
                pass
            message = stream.get_final_completion().choices[0].message
    else:
        message = client.chat.completions.create(**request).choices[0].message
    kept = {"role": "assistant", "content": message.content}
    if message.tool_calls:
        calls = [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls]
        kept["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for id, name, arguments in calls
        ]
    return kept


def answer(client, tracer, messages):
    while True:
        message = completed(client, messages)
        messages.append(message)
        if "tool_calls" not in message:
            return message["content"]
        for call in message["tool_calls"]:
            name = call["function"]["name"]
            with tracer.start_as_current_span(name):
                result = told(FUNCTIONS[name], json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


def main():
    with telemetry():
        instrument()
        client = OpenAI(base_url=JOB["base_url"], api_key="none")
        tracer = trace.get_tracer("desk.app")
        messages = [{"role": "system", "content": DESK.instructions}]
        for text in JOB["turns"]:
            with tracer.start_as_current_span("POST /desk"):
                messages.append({"role": "user", "content": text})
                print(answer(client, tracer, messages))


main()
