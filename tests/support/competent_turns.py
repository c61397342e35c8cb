"""Scripted answers to turn questions, alone or in one call.

Uses only the listed ratings and labels; without criteria it gives no rating.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from support.competent_record import GIVES_UP, NOT_CAPTURED, Record, serves, stems, strange, values

Json = dict[str, Any]

_PART = re.compile(r'^"(\w+)": an object \(', re.MULTILINE)
_GUIDE = re.compile(r"^([1-5])  \S", re.MULTILINE)
_LABEL = re.compile(r"^([a-z][a-z ]+?) {2,}\S", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_FUNCTION_WORDS = re.compile(
    r"\b(?:the|is|are|was|i|you|my|our|your|it|to|of|and|for|can|please|when|not|that|this|will|have)\b", re.IGNORECASE
)
_TELLS_OF_FAILURE = re.compile(
    r"\b(?:not|no|cannot|could|fail\w*|error|unable|sorry|again|later)\b|n't\b", re.IGNORECASE
)
_NAME = re.compile(r"\b[A-Z][a-z]{2,} [A-Z][a-z]{2,}\b")
_LONG, _VERY_LONG, _SHORT = 90, 180, 3
_NONE = "no failure"


def asked_parts(question: str, name: str = "turn") -> dict[str, str]:
    """Return the criteria of each part of a turn question. ``name``: of the question."""
    text, _, form = question.partition("exactly these fields:\n")
    names = _PART.findall(form) if name == "turn" else [name] if name in (*_RATINGS, *_LABELS) else []
    if name != "turn":
        return dict.fromkeys(names, text)
    return {name: text.partition(f"\n## {name}\n")[2].partition("\n## ")[0] for name in names}


@dataclass(frozen=True)
class Seen:
    """Evidence shared by all questions.

    ``made_up``: unknown values. ``hidden``: missing result. ``untold``: unmentioned failure. ``again``: repeated
    answer.
    ``foreign``: other language. ``broken_off``: cut off. ``bare``: omits values. ``near``, ``on_topic``: shares.
    """

    made_up: list[str]
    hidden: bool
    untold: bool
    again: bool
    foreign: bool
    broken_off: bool
    bare: bool
    near: float
    on_topic: float
    gives_up: bool
    wrong_calls: list[int]
    wrong_arguments: list[int]


def look(record: Record) -> Seen:
    """Read the evidence from the record."""
    answer, steps = record.answer, record.steps
    asked = record.asked + f" {record.given.get('goal', '')}"
    results = " ".join(step.result for step in steps)
    shown = f"{record.context} {results} {record.given.get('knowledge', '')} {record.of('WHEN THE RUN BEGAN')}"
    shown += " ".join(step.arguments for step in steps)
    made_up = values(answer, spelled_out=False) - values(shown)
    made_up |= {name for name in _NAME.findall(answer) if name.casefold() not in shown.casefold()}
    failed = bool(steps) and steps[-1].result.startswith("Error") and not _TELLS_OF_FAILURE.search(answer)
    topic = stems(asked) | stems(results)
    sentences = [stems(each) for each in _SENTENCE.split(answer) if stems(each)]
    english = len(_FUNCTION_WORDS.findall(asked)) >= 3
    return Seen(
        made_up=sorted(made_up),
        hidden=any(step.result == NOT_CAPTURED for step in steps),
        untold=failed,
        again=answer.strip() != "" and answer.strip() in record.of("THE CONVERSATION BEFORE"),
        foreign=english and len(answer) > 30 and not _FUNCTION_WORDS.search(answer),
        broken_off=answer.rstrip()[-1:].isalnum() and len(answer.split()) > 2,
        bare=bool(values(results, spelled_out=False)) and not values(results) & values(answer),
        near=len(stems(asked) & stems(answer)) / max(1, len(stems(asked))),
        on_topic=sum(bool(each & topic) for each in sentences) / max(1, len(sentences)),
        gives_up=GIVES_UP.search(answer) is not None,
        wrong_calls=[step.number for step in steps if not serves(step.name, record, stems(record.task))],
        wrong_arguments=list(_wrong_arguments(record)),
    )


def _wrong_arguments(record: Record) -> Iterator[int]:
    known = f"{record.context} {record.given.get('goal', '')}"
    for step in record.steps:
        if step.arguments != NOT_CAPTURED and next(strange(step.arguments, known), None) is not None:
            yield step.number
        known = f"{known} {step.result}"


# -- ratings: deductions from the best rating --------------------------------------------------------------------------


def relevance(seen: Seen, record: Record) -> float | None:
    """Compare the words of the answer with question and results."""
    return 1 if seen.near == 0 else 3 if seen.foreign else 5 - 4 * (1 - seen.on_topic) - (seen.near < 0.2)


def helpfulness(seen: Seen, record: Record) -> float | None:
    """Rate completeness, relevance and reported findings."""
    return 5 - 3 * seen.gives_up - 2 * seen.broken_off - 2 * seen.bare - (seen.near < 0.3) - 2 * seen.foreign


def coherence(seen: Seen, record: Record) -> float | None:
    """Rate interruptions, repetition and language changes."""
    return 5 - 2 * seen.broken_off - 3 * seen.again - 3 * seen.foreign


def faithfulness(seen: Seen, record: Record) -> float | None:
    """Require supported values and reported failures."""
    if seen.made_up and seen.hidden:
        return None
    return 5 - min(4, 3 * bool(seen.made_up) + max(0, len(seen.made_up) - 1)) - 3 * seen.untold


def verbosity(seen: Seen, record: Record) -> float | None:
    """Compare length and repetition with a usual answer."""
    words = record.answer.split()
    sentences = [each.strip().casefold() for each in _SENTENCE.split(record.answer)]
    twice = len(sentences) - len({*sentences})
    length = 3 if len(words) <= _SHORT else (len(words) > _LONG) + (len(words) > _VERY_LONG)
    return 5 - length - twice - seen.broken_off


# -- labels and their calls --------------------------------------------------------------------------------------------


def agent_behavior_failure(seen: Seen, record: Record) -> dict[str, list[int]]:
    """Find fabricated values, repeated answers and withheld results."""
    found = {
        "false information": seen.untold or (bool(seen.made_up) and not seen.hidden),
        "repetition": seen.again,
        "lack of specific information": seen.bare and not seen.again,
    }
    return {label: [] for label, applies in found.items() if applies}


def tool_call_behavior_failure(seen: Seen, record: Record) -> dict[str, list[int]]:
    """Find useless calls, unnamed arguments and contradicted results."""
    last = [step.number for step in record.steps[-1:]]
    ignored = last if seen.untold or (seen.made_up and not seen.hidden) else []
    missing = not record.steps and bool(record.tools) and bool(seen.made_up)
    found = {"ignored tool result": ignored, "wrong tool": seen.wrong_calls, "wrong arguments": seen.wrong_arguments}
    return {label: calls for label, calls in found.items() if calls} | ({"missing tool call": []} if missing else {})


_RATINGS: Mapping[str, Callable[[Seen, Record], float | None]] = {
    each.__name__: each for each in (relevance, helpfulness, coherence, faithfulness, verbosity)
}
_LABELS: Mapping[str, Callable[[Seen, Record], dict[str, list[int]]]] = {
    each.__name__: each for each in (agent_behavior_failure, tool_call_behavior_failure)
}


def of_turn(record: Record, parts: Mapping[str, str]) -> Json:
    """Answer each part. ``parts``: criteria by name."""
    seen = look(record)
    return {name: _part(name, criteria, seen, record) for name, criteria in parts.items()}


def _part(name: str, criteria: str, seen: Seen, record: Record) -> Json:
    reason = (
        f"Shown nowhere: {', '.join(seen.made_up)[:300] or 'nothing'}; {seen.near:.0%} of the user's words are in it."
    )
    if name in _RATINGS:
        levels = [int(each) for each in _GUIDE.findall(criteria)]
        rating = _RATINGS[name](seen, record)
        near = None if rating is None or not levels else min(levels, key=lambda level: abs(level - rating))
        return {"reason": reason, "rating": near}
    listed = _LABEL.findall(criteria)
    found = {label: calls for label, calls in _LABELS[name](seen, record).items() if label in listed}
    calls = sorted({number for each in found.values() for number in each})[:20]
    return {"reason": reason, "labels": [*found] or [_NONE] * (_NONE in listed), "calls": calls}
