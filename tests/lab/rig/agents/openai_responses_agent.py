"""The OpenAI client over the responses API, without a session; each call continues a response.

``RIG_INSTRUMENTATION``: genai, openinference.
"""

import json
import os

from common import DESK, JOB, MODEL, telemetry, told
from openai import OpenAI
from opentelemetry import trace

FUNCTIONS = {function.__name__: function for function in DESK.tools}
TOOLS = [{"type": "function", **schema} for schema in JOB["tools"]]


def instrument():
    match os.environ["RIG_INSTRUMENTATION"]:
        case "genai":
            from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
        case "openinference":
            from openinference.instrumentation.openai import OpenAIInstrumentor
    OpenAIInstrumentor().instrument()


def answer(client, tracer, given, previous):
    """Call the model until no tool call; return the last response."""
    while True:
        response = client.responses.create(
            model=MODEL, instructions=DESK.instructions, tools=TOOLS, input=given, previous_response_id=previous
        )
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return response
        given, previous = [], response.id
        for call in calls:
            with tracer.start_as_current_span(call.name):
                result = told(FUNCTIONS[call.name], json.loads(call.arguments))
            given.append({"type": "function_call_output", "call_id": call.call_id, "output": result})


def main():
    with telemetry():
        instrument()
        client = OpenAI(base_url=JOB["base_url"], api_key="none")
        tracer = trace.get_tracer("desk.app")
        previous = None
        for text in JOB["turns"]:
            with tracer.start_as_current_span("POST /desk"):
                response = answer(client, tracer, [{"role": "user", "content": text}], previous)
            previous = response.id
            print(response.output_text)


main()
