"""Google ADK with its own telemetry and a scripted Gemini endpoint."""

import asyncio
import os

from common import DESK, JOB, telemetry
from google.adk.agents import Agent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.runners import InMemoryRunner
from google.genai import types

USER = "customer-17"


def answer_errors(tool, args, tool_context, error):
    return {"error": f"{type(error).__name__}: {error}"}


async def converse():
    agent = Agent(
        name=DESK.agent,
        model="gemini-2.5-flash",
        instruction=DESK.instructions,
        tools=list(DESK.tools),
        on_tool_error_callback=answer_errors,
    )
    runner = InMemoryRunner(agent=agent, app_name="desk")
    await runner.session_service.create_session(app_name="desk", user_id=USER, session_id=JOB["session"])
    mode = StreamingMode.SSE if JOB["streamed"] else StreamingMode.NONE
    for text in JOB["turns"]:
        message = types.Content(role="user", parts=[types.Part(text=text)])
        async for event in runner.run_async(
            user_id=USER, session_id=JOB["session"], new_message=message, run_config=RunConfig(streaming_mode=mode)
        ):
            if event.is_final_response() and event.content:
                print("".join(part.text or "" for part in event.content.parts if not part.thought))


def main():
    os.environ["GOOGLE_GEMINI_BASE_URL"] = JOB["model_root"]
    with telemetry():
        asyncio.run(converse())


main()
