"""The OpenAI Agents SDK over the responses API. ``RIG_INSTRUMENTATION``: genai, openinference."""

import asyncio
import os

from agents import Agent, RunConfig, Runner, SQLiteSession, function_tool, set_default_openai_client
from agents.tracing import set_trace_processors
from common import DESK, JOB, MODEL, telemetry
from openai import AsyncOpenAI


def instrument():
    match os.environ["RIG_INSTRUMENTATION"]:
        case "genai":
            from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
            from opentelemetry.instrumentation.genai.openai_agents import OpenAIAgentsInstrumentor

            OpenAIAgentsInstrumentor().instrument(disable_openai_trace_export=True)
            OpenAIInstrumentor().instrument()
        case "openinference":
            from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

            OpenAIAgentsInstrumentor().instrument()


async def converse():
    agent = Agent(
        name=DESK.agent,
        instructions=DESK.instructions,
        model=MODEL,
        tools=[function_tool(function) for function in DESK.tools],
    )
    session = SQLiteSession(JOB["session"])
    config = RunConfig(group_id=JOB["session"], workflow_name=DESK.service)
    for text in JOB["turns"]:
        if JOB["streamed"]:
            result = Runner.run_streamed(agent, text, session=session, run_config=config)
            async for _ in result.stream_events():
                pass
        else:
            result = await Runner.run(agent, text, session=session, run_config=config, max_turns=20)
        print(result.final_output)


def main():
    set_trace_processors([])  # the SDK's own upload off
    with telemetry():
        instrument()
        set_default_openai_client(AsyncOpenAI(base_url=JOB["base_url"], api_key="none"), use_for_tracing=False)
        asyncio.run(converse())


main()
