"""The run is handed over to the wrong agent."""

import re
from collections.abc import Mapping
from random import Random
from typing import Any

from pandaeval_collector.analysis.rules._verbs import Nature, nature
from pandaeval_collector.drill.edits import CustomEdit
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._calls import chosen
from pandaeval_collector.drill.raw import RawTrace, rewritten
from pandaeval_collector.drill.subject import Subject
from pandaeval_otel.model import ToolCall, Trace

_ELSEWHERE = ("complaints_agent", "loyalty_agent", "press_agent")
"""Agents that a run is handed over to that knows of no third one."""


def edit(subject: Subject, rng: Random) -> CustomEdit:
    """Names another agent in the call that hands over, and as the one that went on."""
    trace = subject.trace

    def target(call: ToolCall) -> str | None:
        """The agent of this run that the call hands over to, as its name or its arguments tell."""
        words = [call.name, *(call.arguments.values() if isinstance(call.arguments, dict) else ())]
        told = [_plain(each) for each in words if isinstance(each, str)]
        others = (agent for agent in trace.agents if agent and agent != call.agent)
        return next((agent for agent in others if any(each.endswith(_plain(agent)) for each in told)), None)

    def fits(call: ToolCall) -> bool:
        return nature(call.name, None) is Nature.HAND_OVER and target(call) is not None

    index = chosen(subject, rng, "call that hands over to an agent of the run", fits)
    call = trace.tool_calls[index]
    right = target(call) or ""
    known = {agent for each in (*subject.earlier, trace) for agent in each.agents}
    wrong = rng.choice(sorted(known - {right, call.agent, ""}) or _ELSEWHERE)
    return _handed_over(index, _renames(call, right, wrong), f"{call.name} hands over to {wrong} instead of {right}")


def _renames(call: ToolCall, right: str, wrong: str) -> dict[str, str]:
    """What is spelled otherwise then: the agent, and a tool that is called by the agent's name."""
    old = _plain(right)
    by_name = _plain(call.name).endswith(old)
    return {right: wrong, **({call.name: f"{call.name[: -len(old)]}{_plain(wrong)}"} if by_name else {})}


def _handed_over(index: int, renames: Mapping[str, str], what: str) -> CustomEdit:
    (right, wrong), *_ = renames.items()

    def rename(held: Any) -> Any:
        return renames.get(held, held) if isinstance(held, str) else held

    def change(raw: RawTrace, before: Trace) -> None:
        raw.rewrite(rename)
        for span in raw.spans():
            span.name = span.name.replace(right, wrong)

    def test(before: Trace, after: Trace) -> bool:
        call, calls = before.tool_calls[index], after.tool_calls
        told = calls[index].name == rename(call.name) and calls[index].arguments == rewritten(call.arguments, rename)
        there = right not in after.agents and wrong in after.agents and len(calls) == len(before.tool_calls)
        return told and there and after.output == before.output

    return CustomEdit(change, test, what)


def _plain(name: str) -> str:
    return re.sub(r"\W+", "_", name).casefold()


FAULT = Fault("course", "The run is handed over to the wrong agent.", edit)
