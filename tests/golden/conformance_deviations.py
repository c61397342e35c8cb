"""Where a framework or its instrumentation does otherwise than the script says, and what we cannot read, with reasons.

What the application itself got as its final answer is not here: it is recorded beside the captures.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

OWN_SESSIONS = ("pydantic_ai",)
"""Sets (prefixes) whose framework invents a conversation id of its own and keeps it over the turns, where the
application passed none."""

AGENT_NAMES = {
    "smolagents_oi": ("ToolCallingAgent",),
    "smolagents_genai": ("ToolCallingAgent",),
    "smolagents_code_oi": ("CodeAgent",),
}
"""Frameworks that name agents by their class."""

SPREAD_CALLS = frozenset({"openlit_openai"})
"""Instrumentations that leave tool calls out of the history that they record: each call stands only in the trace of
the model call that asked for it, and the trace with the final answer cannot take it over."""


@dataclass(frozen=True)
class Excuse:
    """A fact that a capture carries and that we do not read, on purpose. ``set`` and ``scenario`` may hold ``*``."""

    set: str
    fact: str
    reason: str
    scenario: str = "*"

    def covers(self, name: str, scenario: str, fact: str) -> bool:
        return fact == self.fact and fnmatchcase(name, self.set) and fnmatchcase(scenario, self.scenario)


EXCUSES = (
    Excuse("adk", "reasoning", "thoughts are emitted as ordinary text parts, with nothing that tells them apart"),
    Excuse(
        "adk_content", "reasoning", "thoughts are emitted as ordinary text parts, with nothing that tells them apart"
    ),
    Excuse(
        "openlit_openai", "results", "results stand in the next trace's input under ids of calls that it leaves out"
    ),
    Excuse(
        "openai_agents_v2", "reasoning", "thoughts stand only inside the Python repr of an SDK object, as a text part"
    ),
)


def excuse(name: str, scenario: str, fact: str) -> Excuse | None:
    """The excuse for not reading ``fact`` in a capture, if there is one."""
    return next((found for found in EXCUSES if found.covers(name, scenario, fact)), None)
