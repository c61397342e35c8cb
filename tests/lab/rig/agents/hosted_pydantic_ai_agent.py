"""Pydantic AI with hosted tools. ``RIG_PROVIDER``: anthropic, openai."""

import asyncio
import os

from common import DESK, JOB, telemetry
from pydantic_ai import Agent, CodeExecutionTool, FileSearchTool, MCPServerTool, WebSearchTool
from pydantic_ai.capabilities import NativeTool


def provider():
    """Return the model and its hosted tools."""
    tools = [WebSearchTool(), CodeExecutionTool()]
    match os.environ["RIG_PROVIDER"]:
        case "openai":
            from pydantic_ai.models.openai import OpenAIResponsesModel
            from pydantic_ai.providers.openai import OpenAIProvider

            settings = {
                "openai_include_file_search_results": True,
                "openai_include_code_execution_outputs": True,
            }
            model = OpenAIResponsesModel(
                "gpt-5-mini", provider=OpenAIProvider(base_url=JOB["base_url"], api_key="none"), settings=settings
            )
            tools += [
                FileSearchTool(file_store_ids=["vs_rules"]),
                MCPServerTool(id="sports", url="https://races.example/mcp"),
            ]
        case "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            model = AnthropicModel(
                "claude-sonnet-4-5", provider=AnthropicProvider(base_url=JOB["model_root"], api_key="none")
            )
    return model, [NativeTool(tool) for tool in tools]


async def swallow(_context, events):
    async for _ in events:
        pass


async def converse():
    model, hosted = provider()
    own = [tool for tool in DESK.tools if tool.__name__ == "search_catalogue"]
    agent = Agent(model, name=DESK.agent, instructions=DESK.instructions, tools=own, capabilities=hosted)
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
