"""Strands Agents with its own telemetry; the session is a trace attribute."""

from common import DESK, JOB, MODEL, telemetry
from strands import Agent, tool
from strands.models.openai import OpenAIModel


def main():
    with telemetry():
        agent = Agent(
            model=OpenAIModel(client_args={"base_url": JOB["base_url"], "api_key": "none"}, model_id=MODEL),
            system_prompt=DESK.instructions,
            tools=[tool(function) for function in DESK.tools],
            name=DESK.agent,
            callback_handler=None,
            trace_attributes={"session.id": JOB["session"]},
        )
        for text in JOB["turns"]:
            print(agent(text))


main()
