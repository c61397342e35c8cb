"""What a problem score is made of: numbers of a session, each with the words that tell it to people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
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


@dataclass(frozen=True, slots=True)
class Feature:
    """A number about a session. ``more``, ``less``: words for a high or low value that speaks for a problem."""

    more: str
    less: str
    of: Callable[[Sequence[Course]], float]


def _sum(traces: Sequence[Course], name: str) -> int:
    return sum(getattr(trace, name) for trace in traces)


def _log(name: str, traces: Sequence[Course]) -> float:
    return log1p(_sum(traces, name))


def _share(name: str, of: str, traces: Sequence[Course]) -> float:
    return _sum(traces, name) / max(1, _sum(traces, of))


def _mean(name: str, of: str, traces: Sequence[Course]) -> float:
    return log1p(_share(name, of, traces))


def _any(name: str, traces: Sequence[Course]) -> float:
    return float(_sum(traces, name) > 0)


def _at_end(name: str, last: int, traces: Sequence[Course]) -> float:
    return _any(name, traces[-last:])


FEATURES: Mapping[str, Feature] = {
    "spans": Feature("many steps", "few steps", partial(_log, "spans")),
    "user_turns": Feature("many user turns", "few user turns", partial(_log, "users")),
    "calls": Feature("many tool calls", "few tool calls", partial(_log, "calls")),
    "calls_per_turn": Feature("many calls for each turn", "few calls for each turn", partial(_share, "calls", "users")),
    "failed_calls": Feature("many calls failed", "few calls failed", partial(_share, "failed", "calls")),
    "a_call_failed": Feature("a call failed", "no call failed", partial(_any, "failed")),
    "unresolved_failure": Feature("a failure that nothing made up for", "no failure was left", partial(_any, "lost")),
    "unresolved_at_end": Feature("it ended on a failure", "it did not end on a failure", partial(_at_end, "lost", 1)),
    "changing_calls": Feature(
        "many calls that change things", "few calls that change things", partial(_log, "to_change")
    ),
    "changes_made": Feature("many changes were made", "few changes were made", partial(_log, "changed")),
    "a_change_failed": Feature(
        "a change failed",
        "no change failed",
        lambda traces: float(_sum(traces, "changed") < _sum(traces, "to_change")),
    ),
    "nothing_changed": Feature(
        "nothing was changed", "something was changed", lambda traces: float(_sum(traces, "changed") == 0)
    ),
    "repeated_calls": Feature("calls were repeated", "no call was repeated", partial(_share, "repeats", "calls")),
    "handed_over": Feature("it handed over", "it did not hand over", partial(_any, "handed")),
    "results_unused": Feature("results were not used", "results were used", partial(_share, "unused", "results")),
    "apologies": Feature("many apologies", "few apologies", partial(_share, "apologies", "answers")),
    "refusals": Feature("many refusals", "few refusals", partial(_share, "refusals", "answers")),
    "refusal_at_end": Feature(
        "it ended with a refusal or an apology",
        "it did not end with a refusal",
        lambda traces: max(_at_end("refusals", _LAST, traces), _at_end("apologies", _LAST, traces)),
    ),
    "done_at_end": Feature(
        "it said at the end that it was done", "it did not say that it was done", partial(_at_end, "done", _LAST)
    ),
    "asks_at_end": Feature("it ended with a question", "it did not end with a question", partial(_at_end, "asks", 1)),
    "asks_to_confirm": Feature(
        "it often asked to confirm", "it seldom asked to confirm", partial(_share, "confirming", "answers")
    ),
    "user_corrects": Feature(
        "the user corrected it",
        "the user did not correct it",
        lambda traces: _sum(traces[1:], "corrections") / max(1, _sum(traces, "users")),
    ),
    "thanks_at_end": Feature(
        "the user thanked at the end", "the user did not thank", partial(_at_end, "thanks", _LAST)
    ),
    "answer_length": Feature("long answers", "short answers", partial(_mean, "answer_chars", "answers")),
    "user_length": Feature(
        "long messages of the user", "short messages of the user", partial(_mean, "user_chars", "users")
    ),
    "first_message": Feature(
        "a long first message", "a short first message", lambda traces: log1p(_sum(traces[:1], "user_chars"))
    ),
    "last_answer": Feature("a long last answer", "a short last answer", lambda t: log1p(_sum(t[-1:], "answer_chars"))),
    "different_tools": Feature(
        "a new tool for almost every call",
        "many calls of few tools",
        lambda traces: len({name for trace in traces for name in trace.tools}) / max(1, _sum(traces, "calls")),
    ),
}
LENGTH = ("spans", "calls", "user_turns")
"""The features of length alone, which a model has to beat."""


def session_features(traces: Sequence[Course], scores: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Returns the features of a session, by name, from the counts of its traces in order and their metrics' scores. A
    trace alone is a session of one. Raises ``ValueError`` without a trace."""
    if not traces:
        raise ValueError("a session without traces has no features")
    found = {name: feature.of(traces) for name, feature in FEATURES.items()}
    for rule in RULES:
        values = [each[rule] for each in scores if rule in each] or [1.0]
        found[f"worst {rule}"], found[f"mean {rule}"] = min(values), sum(values) / len(values)
    found.update((CALLS + name, 1.0) for trace in traces for name in trace.tools)
    return found


def told(name: str, high: bool) -> str:
    """Says in words that a feature is above (``high``) or below that of most sessions."""
    if name in FEATURES:
        return FEATURES[name].more if high else FEATURES[name].less
    if name.startswith(CALLS):
        return f"{name.removeprefix(CALLS)} was called" if high else f"{name.removeprefix(CALLS)} was not called"
    return f"{name} score {'high' if high else 'low'}"
