"""LangChain's ``create_agent`` on LangGraph, with a checkpointer.

``RIG_INSTRUMENTATION``: genai, openinference, openllmetry.
"""

import os

from common import DESK, JOB, MODEL, telemetry
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain.chat_models import init_chat_model
from langchain.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver


def instrument():
    match os.environ["RIG_INSTRUMENTATION"]:
        case "genai":
            from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor as Instrumentor
        case "openinference":
            from openinference.instrumentation.langchain import LangChainInstrumentor as Instrumentor
        case "openllmetry":
            from opentelemetry.instrumentation.langchain import LangchainInstrumentor as Instrumentor
    Instrumentor().instrument()


@wrap_tool_call
def answer_errors(request, handler):
    try:
        return handler(request)
    except Exception as error:
        return ToolMessage(f"Error: {error}", tool_call_id=request.tool_call["id"], status="error")


def main():
    with telemetry():
        instrument()
        agent = create_agent(
            init_chat_model(MODEL, model_provider="openai", base_url=JOB["base_url"], api_key="none"),
            tools=[tool(function) for function in DESK.tools],
            system_prompt=DESK.instructions,
            name=DESK.agent,
            checkpointer=InMemorySaver(),
            middleware=[answer_errors] if JOB["failing_tools"] else [],
        )
        config = {"configurable": {"thread_id": JOB["session"]}, "recursion_limit": 60}
        for text in JOB["turns"]:
            question = {"messages": [{"role": "user", "content": text}]}
            if JOB["streamed"]:
                state = list(agent.stream(question, config, stream_mode="values"))[-1]
            else:
                state = agent.invoke(question, config)
            print(state["messages"][-1].content)


main()
