"""Known deviations from the script, and unreadable facts, with reasons."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

OWN_SESSIONS = ("pydantic_ai", "claude_", "copilot_cli", "gemini_cli", "opencode", "qwen_code")
"""Sets (prefixes) whose framework invents a conversation ID."""

AGENT_NAMES = {
    "smolagents_oi": ("ToolCallingAgent",),
    "smolagents_genai": ("ToolCallingAgent",),
    "smolagents_code_oi": ("CodeAgent",),
}
"""Frameworks that name agents by class."""

TOOL_PREFIXES = {
    "copilot_cli": "desk-",
    "gemini_cli": "mcp_desk_",
    "opencode": "desk_",
    "qwen_code": "mcp__desk__",
}
"""Prefixes of tool names by MCP clients."""

RUNS_AGAIN = {"crewai_oi/llm_error": 3}
"""Number of runs of a failed task."""

ENDS_AT_FAILURE = frozenset({"genkit/tool_error", "genkit_go/tool_error"})
"""Captures whose run ended with a tool failure."""

TOKENS_ON_RUNS = frozenset({"voltagent"})
"""Instrumentations with one span for all model calls, with the last call's tokens."""

SPREAD_CALLS = frozenset({"openlit_openai"})
"""Instrumentations that omit tool calls from history."""


@dataclass(frozen=True)
class Excuse:
    """An intentionally unread fact. ``set`` and ``scenario`` may be ``*``."""

    set: str
    fact: str
    reason: str
    scenario: str = "*"

    def covers(self, name: str, scenario: str, fact: str) -> bool:
        return fact == self.fact and fnmatchcase(name, self.set) and fnmatchcase(scenario, self.scenario)


_THOUGHTS = "thoughts are emitted as ordinary text, without a mark"
_REPR = "thoughts are only in the Python repr of SDK objects"
_ACTORS = "content is only in messages between actors, spread over many traces"
_EVICTED = "the SDK dropped the oldest attributes of spans with more than 128 attributes"
_LEFT_OUT = "results are in the input of the next trace, under ids of calls that the instrumentation omits there"

EXCUSES = (
    Excuse("adk", "reasoning", _THOUGHTS),
    Excuse("adk_content", "reasoning", _THOUGHTS),
    *(Excuse("autogen_team", fact, _ACTORS) for fact in ("input", "output", "arguments", "results")),
    Excuse("langgraph_oi_trunc", "parameters", "a length limit cut the schemas in two"),
    Excuse("openai_agents_oi", "reasoning", _EVICTED, "long"),
    Excuse("llama_index_oi", "reasoning", _REPR),
    *(Excuse("openai_oi", fact, _EVICTED, "long") for fact in ("input", "calls", "arguments", "results")),
    Excuse("langfuse_langchain", "reasoning", "thoughts are only in the outputs of the graph's nodes"),
    Excuse("traceai_agents", "reasoning", "thoughts are only in the raw body of the next request"),
    Excuse("voltagent", "reasoning", "thoughts are only in the records of its memory"),
    Excuse("openlit_openai", "errors", _LEFT_OUT),
    Excuse("openlit_openai", "input", "the span of a model call that failed has no input", "llm_error"),
    Excuse("openlit_openai", "results", _LEFT_OUT),
    Excuse(
        "smolagents_code_oi",
        "tools",
        "the tools are on the agent's span, which is not sent when a run fails",
        "llm_error",
    ),
)


def excuse(name: str, scenario: str, fact: str) -> Excuse | None:
    """Return the excuse for ``fact``, if any."""
    return next((found for found in EXCUSES if found.covers(name, scenario, fact)), None)
