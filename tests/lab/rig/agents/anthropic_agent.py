"""The Anthropic client with thinking, a manual tool loop and own spans."""

from anthropic import Anthropic
from common import DESK, JOB, telemetry, told
from opentelemetry import trace
from opentelemetry.instrumentation.genai.anthropic import AnthropicInstrumentor

FUNCTIONS = {function.__name__: function for function in DESK.tools}
TOOLS = [
    {"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]}
    for tool in JOB["tools"]
]


def answer(client, tracer, messages):
    while True:
        message = client.messages.create(
            model="claude-sonnet-4-5",
            system=DESK.instructions,
            messages=messages,
            tools=TOOLS,
            max_tokens=4096,
            thinking={"type": "enabled", "budget_tokens": 1024},
        )
        messages.append({"role": "assistant", "content": [block.model_dump() for block in message.content]})
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
        AnthropicInstrumentor().instrument()
        client = Anthropic(base_url=JOB["model_root"], api_key="none")
        tracer = trace.get_tracer("desk.app")
        messages = []
        for text in JOB["turns"]:
            with tracer.start_as_current_span("POST /desk"):
                messages.append({"role": "user", "content": text})
                print(answer(client, tracer, messages))


main()
