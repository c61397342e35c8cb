"""LangChain's ``create_agent`` with hosted tools.

``RIG_INSTRUMENTATION``: genai, openinference. ``RIG_PROVIDER``: anthropic, openai.
"""

import os

from common import DESK, JOB, telemetry
from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver


def instrument():
    match os.environ["RIG_INSTRUMENTATION"]:
        case "genai":
            from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor as Instrumentor
        case "openinference":
            from openinference.instrumentation.langchain import LangChainInstrumentor as Instrumentor
    Instrumentor().instrument()


def provider():
    """Return the model and its hosted tools."""
    match os.environ["RIG_PROVIDER"]:
        case "openai":
            from langchain_openai import ChatOpenAI

            model = ChatOpenAI(model="gpt-5-mini", base_url=JOB["base_url"], api_key="none", use_responses_api=True)
            mcp = {"server_label": "sports", "server_url": "https://races.example/mcp", "require_approval": "never"}
            return model, [
                {"type": "web_search"},
                {"type": "code_interpreter", "container": {"type": "auto"}},
                {"type": "file_search", "vector_store_ids": ["vs_rules"]},
                {"type": "mcp", **mcp},
            ]
        case "anthropic":
            from langchain_anthropic import ChatAnthropic

            model = ChatAnthropic(model="claude-sonnet-4-5", base_url=JOB["model_root"], api_key="none")
            return model, [
                {"type": "web_search_20250305", "name": "web_search"},
                {"type": "code_execution_20250825", "name": "code_execution"},
            ]


def main():
    with telemetry():
        instrument()
        model, hosted = provider()
        own = [tool(function) for function in DESK.tools if function.__name__ == "search_catalogue"]
        agent = create_agent(
            model,
            tools=[*hosted, *own],
            system_prompt=DESK.instructions,
            name=DESK.agent,
            checkpointer=InMemorySaver(),
        )
        config = {"configurable": {"thread_id": JOB["session"]}}
        for text in JOB["turns"]:
            question = {"messages": [{"role": "user", "content": text}]}
            if JOB["streamed"]:
                *_, state = agent.stream(question, config, stream_mode="values")
            else:
                state = agent.invoke(question, config)
            print(state["messages"][-1].text)


main()
