"""What a problem score is made of: numbers of a session, each with the words that tell it to people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import log1p
from operator import attrgetter
from typing import Any

RULES = ("grounding", "response", "tool_loop", "loop_detection", "coherence")
"""Metrics without a model whose worst and mean score are features; 1.0 where a trace has none."""
CALLS = "calls "
"""Begins the name of the feature that a tool is called at all."""
_LAST = 2
MOST_TOOLS = 64


@dataclass(frozen=True, slots=True)
class Course:
    """How one trace went, in counts; lengths in characters. ``lost``: calls that failed and that nothing made up for;
    ``to_change``, ``changed``: calls of changing tools, and those that worked; ``repeats``: calls equal to an earlier
    one; ``handed``: to another agent or to a person; ``unused``: of ``results``, those of which no value stands in a
    later call or in the answer; ``tools``: names, sorted, 64 at most."""

    spans: int = 0
    users: int = 0
    answers: int = 0
    user_chars: int = 0
    answer_chars: int = 0
    calls: int = 0
    failed: int = 0
    lost: int = 0
    to_change: int = 0
    changed: int = 0
    repeats: int = 0
    handed: int = 0
    results: int = 0
    unused: int = 0
    apologies: int = 0
    refusals: int = 0
    done: int = 0
    confirming: int = 0
    corrections: int = 0
    thanks: int = 0
    asks: int = 0
    tools: tuple[str, ...] = ()

    def pack(self) -> list[Any]:
        """Returns the fields in their order, as a list for JSON."""
        return [*_COUNTS(self), [*self.tools]]

    @classmethod
    def unpack(cls, packed: Sequence[Any] | None) -> Course | None:
        """Reads what :meth:`pack` wrote; returns ``None`` for what another version wrote."""
        if packed is None or len(packed) != len(fields(cls)):
            return None
        names = [each.name for each in fields(cls)]
        return cls(**dict(zip(names, (*packed[:-1], tuple(packed[-1])), strict=True)))


_COUNTS = attrgetter(*(each.name for each in fields(Course) if each.name != "tools"))


FEATURES: Mapping[str, tuple[str, str]] = {
    "spans": ("many steps", "few steps"),
    "user_turns": ("many user turns", "few user turns"),
    "calls": ("many tool calls", "few tool calls"),
    "calls_per_turn": ("many calls for each turn", "few calls for each turn"),
    "failed_calls": ("many calls failed", "few calls failed"),
    "a_call_failed": ("a call failed", "no call failed"),
    "unresolved_failure": ("a failure that nothing made up for", "no failure was left"),
    "unresolved_at_end": ("it ended on a failure", "it did not end on a failure"),
    "changing_calls": ("many calls that change things", "few calls that change things"),
    "changes_made": ("many changes were made", "few changes were made"),
    "a_change_failed": ("a change failed", "no change failed"),
    "nothing_changed": ("nothing was changed", "something was changed"),
    "repeated_calls": ("calls were repeated", "no call was repeated"),
    "handed_over": ("it handed over", "it did not hand over"),
    "results_unused": ("results were not used", "results were used"),
    "apologies": ("many apologies", "few apologies"),
    "refusals": ("many refusals", "few refusals"),
    "refusal_at_end": ("it ended with a refusal or an apology", "it did not end with a refusal"),
    "done_at_end": ("it said at the end that it was done", "it did not say that it was done"),
    "asks_at_end": ("it ended with a question", "it did not end with a question"),
    "asks_to_confirm": ("it often asked to confirm", "it seldom asked to confirm"),
    "user_corrects": ("the user corrected it", "the user did not correct it"),
    "thanks_at_end": ("the user thanked at the end", "the user did not thank"),
    "answer_length": ("long answers", "short answers"),
    "user_length": ("long messages of the user", "short messages of the user"),
    "first_message": ("a long first message", "a short first message"),
    "last_answer": ("a long last answer", "a short last answer"),
    "different_tools": ("a new tool for almost every call", "many calls of few tools"),
}
"""Numbers about a session, each with the words for a high and for a low value that speaks for a problem."""
OF_STEPS: Mapping[str, tuple[str, str]] = {
    "call": ("it is a call", "it is no call"),
    "after_call": ("it comes after a call", "it comes after no call"),
    "first": ("it is the first step", "it is not the first step"),
    "failed": ("it failed", "it did not fail"),
    "before_failure": ("the next step failed", "the next step did not fail"),
    "new_agent": ("the agent is new in the run", "the agent is not new in the run"),
    "code": ("it holds code", "it holds no code"),
    "late": ("it is late in the run", "it is early in the run"),
    "from_end": ("many steps follow", "few steps follow"),
    "length": ("it is long", "it is short"),
    "numbers": ("it holds many numbers", "it holds few numbers"),
}
"""Numbers about a step of a run, each with the words for a high and for a low value that speaks for it."""
LENGTH = ("spans", "calls", "user_turns")
"""The features of length alone, which a model has to beat."""


def session_features(traces: Sequence[Course], scores: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Returns the features of a session, by name, from the counts of its traces in order and their metrics' scores. A
    trace alone is a session of one. Raises ``ValueError`` without a trace."""
    if not traces:
        raise ValueError("a session without traces has no features")

    def total(name: str, some: Sequence[Course] = traces) -> int:
        return sum(getattr(trace, name) for trace in some)

    def share(name: str, of: str) -> float:
        return total(name) / max(1, total(of))

    def at_end(name: str, last: int = _LAST) -> float:
        return float(total(name, traces[-last:]) > 0)

    found = {
        "spans": log1p(total("spans")),
        "user_turns": log1p(total("users")),
        "calls": log1p(total("calls")),
        "calls_per_turn": share("calls", "users"),
        "failed_calls": share("failed", "calls"),
        "a_call_failed": float(total("failed") > 0),
        "unresolved_failure": float(total("lost") > 0),
        "unresolved_at_end": at_end("lost", 1),
        "changing_calls": log1p(total("to_change")),
        "changes_made": log1p(total("changed")),
        "a_change_failed": float(total("changed") < total("to_change")),
        "nothing_changed": float(total("changed") == 0),
        "repeated_calls": share("repeats", "calls"),
        "handed_over": float(total("handed") > 0),
        "results_unused": share("unused", "results"),
        "apologies": share("apologies", "answers"),
        "refusals": share("refusals", "answers"),
        "refusal_at_end": max(at_end("refusals"), at_end("apologies")),
        "done_at_end": at_end("done"),
        "asks_at_end": at_end("asks", 1),
        "asks_to_confirm": share("confirming", "answers"),
        "user_corrects": total("corrections", traces[1:]) / max(1, total("users")),
        "thanks_at_end": at_end("thanks"),
        "answer_length": log1p(share("answer_chars", "answers")),
        "user_length": log1p(share("user_chars", "users")),
        "first_message": log1p(total("user_chars", traces[:1])),
        "last_answer": log1p(total("answer_chars", traces[-1:])),
        "different_tools": len({name for trace in traces for name in trace.tools}) / max(1, total("calls")),
    }
    for rule in RULES:
        values = [each[rule] for each in scores if rule in each] or [1.0]
        found[f"worst {rule}"], found[f"mean {rule}"] = min(values), sum(values) / len(values)
    found.update((CALLS + name, 1.0) for trace in traces for name in trace.tools)
    return found


def told(name: str, high: bool) -> str:
    """Says in words that a feature is above (``high``) or below that of most sessions, or steps."""
    if words := FEATURES.get(name) or OF_STEPS.get(name):
        return words[0 if high else 1]
    if name.startswith(CALLS):
        return f"{name.removeprefix(CALLS)} was called" if high else f"{name.removeprefix(CALLS)} was not called"
    return f"{name} score {'high' if high else 'low'}"
