"""Pydantic AI with its own instrumentation in the default format."""

import asyncio
import functools

from common import DESK, JOB, MODEL, telemetry
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


def retrying(function):
    @functools.wraps(function)
    def wrapped(*arguments, **named):
        try:
            return function(*arguments, **named)
        except Exception as error:
            raise ModelRetry(str(error)) from error

    return wrapped


async def swallow(_context, events):
    async for _ in events:
        pass


async def converse():
    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=JOB["base_url"], api_key="none"))
    tools = [retrying(function) for function in DESK.tools]
    agent = Agent(model, name=DESK.agent, instructions=DESK.instructions, tools=tools, retries=3)
    history = None
    for text in JOB["turns"]:
        handler = swallow if JOB["streamed"] else None
        result = await agent.run(
            text, message_history=history, conversation_id=JOB["session"], event_stream_handler=handler
        )
        history = result.all_messages()
        print(result.output)


def main():
    with telemetry():
        Agent.instrument_all()
        asyncio.run(converse())


main()
