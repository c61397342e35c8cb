"""The Anthropic client with hosted tools and own spans.

``RIG_INSTRUMENTATION``: genai, openinference.
"""

import os

from anthropic import Anthropic
from common import DESK, JOB, telemetry, told
from opentelemetry import trace

FUNCTIONS = {function.__name__: function for function in DESK.tools}
TOOLS = [
    {"type": "web_search_20250305", "name": "web_search"},
    {"type": "code_execution_20250825", "name": "code_execution"},
    *(
        {"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]}
        for tool in JOB["tools"]
        if tool["name"] == "search_catalogue"
    ),
]


def instrument():
    match os.environ["RIG_INSTRUMENTATION"]:
        case "genai":
            from opentelemetry.instrumentation.genai.anthropic import AnthropicInstrumentor
        case "openinference":
            from openinference.instrumentation.anthropic import AnthropicInstrumentor
    AnthropicInstrumentor().instrument()


def answer(client, tracer, messages):
    while True:
        asked = {
            "model": "claude-sonnet-4-5",
            "system": DESK.instructions,
            "messages": messages,
            "tools": TOOLS,
            "max_tokens": 4096,
        }
        if JOB["streamed"]:
            with client.messages.stream(**asked) as stream:
                message = stream.get_final_message()
        else:
            message = client.messages.create(**asked)
        messages.append(
            {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in message.content]}
        )
        if message.stop_reason != "tool_use":
            return message.content[-1].text
        results = []
        for block in message.content:
            if block.type == "tool_use":
                with tracer.start_as_current_span(block.name):
                    result = told(FUNCTIONS[block.name], block.input)
                results.append({"type": "tool_result", "tool_use_id": block.id, "content": result})
        messages.append({"role": "user", "content": results})


def main():
    with telemetry():
        instrument()
        client = Anthropic(base_url=JOB["model_root"], api_key="none")
        tracer = trace.get_tracer("desk.app")
        messages = []
        for text in JOB["turns"]:
            with tracer.start_as_current_span("POST /desk"):
                messages.append({"role": "user", "content": text})
                print(answer(client, tracer, messages))


main()
