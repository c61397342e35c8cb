"""The same thing asked for again in other words, where the answer holds nothing that was not known."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pandaeval_collector.analysis.rules._content import is_empty, pieces, unseen_share
from pandaeval_collector.analysis.rules._failures import failed
from pandaeval_collector.analysis.rules._repeats import Step
from pandaeval_collector.analysis.rules._verbs import Nature
from pandaeval_otel.model import ToolCall

LEAST_CALLS = 3
"""A tool that was called less often is not looked at: one attempt in other words is common sense."""
UNSEEN = 0.05
"""A result with at most this share of unseen content brings nothing new."""
_ALIKE, _ALIKE_UNANSWERED = 0.5, 0.75
"""The share of the shorter request's words that have to stand in the other one; and where both found nothing."""
_COMPARED = 4
"""Requests of a subject that a new one is compared with: the first and the latest ones."""
_LONGEST = 2000
_WORD = re.compile(r"[^\W_]+")
_FILLERS = frozenset(
    """
    a about all an and any are as at be by can do does find for from get give go have how i in info information is it
    latest list look me my of on or please search show some tell that the there this to was what when where which who
    why will with you
    """.split()  # noqa: SIM905 - a list of words to be read
)


@dataclass(slots=True)
class _Request:
    """``words``: of its free texts; ``names``: those of them that are numbers, codes or written like names."""

    words: frozenset[str]
    names: frozenset[str]


@dataclass(slots=True)
class _Subject:
    """What was asked for in several ways: under one signature, with all that was answered so far. ``unread``: results
    that nothing was compared with yet, as most never are."""

    signature: str
    turn: int
    requests: list[_Request]
    unread: list[Any]
    known: set[str] = field(default_factory=set)
    empty: bool = True

    def is_read(self) -> bool:
        """Reads what is unread; false, then and for good, if there is too much to say what it says."""
        for result in self.unread:
            said = pieces(result)
            if said is None:
                return False
            self.take(said)
        self.unread = []
        return True

    def take(self, said: tuple[str, ...]) -> None:
        """Takes another answer as known."""
        self.known.update(said)
        self.empty = self.empty and is_empty(said)


def mark_rewordings(steps: Sequence[Step]) -> None:
    """Gives reading calls that ask for the same in other words, and brought nothing new, the signature of the first
    one and sets ``stale``. Only free text may differ: another number, date, name or choice asks for another thing.
    Calls x a few comparisons; never raises."""
    counts: dict[str, int] = {}
    for step in steps:
        counts[step.call.name] = counts.get(step.call.name, 0) + 1
    subjects: dict[tuple[str, str], list[_Subject]] = {}
    for step in steps:
        if counts[step.call.name] >= LEAST_CALLS and step.nature is Nature.READING and step.signature is not None:
            _place(step, step.signature, subjects)


def free_text(arguments: Any) -> bool:
    """Whether arguments hold a text of several words, so that the same may be asked in other ones."""
    if isinstance(arguments, dict):
        return any(isinstance(value, str) and _is_free(value) for value in arguments.values())
    return isinstance(arguments, str) and _is_free(arguments)


def _place(step: Step, signature: str, subjects: dict[tuple[str, str], list[_Subject]]) -> None:
    call = step.call
    if not (call.has_arguments and call.has_result) or failed(call) or not free_text(call.arguments):
        return
    request, said = _request(call.arguments), None
    found = subjects.setdefault((signature.rpartition("\0")[0], _fixed(call)), [])
    for subject in found:
        if subject.turn != step.turn or not _alike(request, subject, _ALIKE) or not subject.is_read():
            continue
        said = pieces(call.result) if said is None else said
        if said is None:
            return
        if subject.empty and is_empty(said) and not _alike(request, subject, _ALIKE_UNANSWERED):
            continue
        if unseen_share(said, subject.known) <= UNSEEN:
            step.stale = signature != subject.signature
            step.signature = subject.signature
        else:  # it went on from there: what follows is compared with all that is known now
            subject.signature = signature
        subject.take(said)
        subject.requests.append(request)
        if len(subject.requests) > _COMPARED:
            del subject.requests[1]
        return
    found.append(_Subject(signature, step.turn, [request], [call.result]))


def _alike(request: _Request, subject: _Subject, least: float) -> bool:
    for other in subject.requests:
        shorter = min(len(request.words), len(other.words))
        if not (request.names <= other.words and other.names <= request.words):
            continue
        if shorter and len(request.words & other.words) >= least * shorter:
            return True
    return False


def _request(arguments: Any) -> _Request:
    words: set[str] = set()
    names: set[str] = set()
    for value in _named(arguments).values():
        if not _is_free(value):
            continue
        for place, word in enumerate(_WORD.findall(value)):
            plain = _stem(word.casefold())
            if plain in _FILLERS:
                continue
            words.add(plain)
            if any(sign.isdigit() for sign in word) or (place and word[:1].isupper()):
                names.add(plain)
    return _Request(frozenset(words), frozenset(names))


def _stem(word: str) -> str:
    for ending, instead in (("ing", ""), ("ies", "y"), ("es", ""), ("s", "")):
        if len(word) > len(ending) + 3 and word.endswith(ending):
            return word[: -len(ending)] + instead
    return word


def _fixed(call: ToolCall) -> str:
    """All but the free texts: which there are, and what stands in the others."""
    named = _named(call.arguments)
    return repr(sorted((key, None if _is_free(value) else repr(value)) for key, value in named.items()))


def _named(arguments: Any) -> Mapping[str, Any]:
    if isinstance(arguments, str):
        return {"": arguments}
    if not isinstance(arguments, dict):
        return {}
    return {str(key): value for key, value in arguments.items() if value is not None and value != ""}


def _is_free(value: Any) -> bool:
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST or value.lstrip()[:1] in ("{", "["):
        return False
    return len(value.split(None, 2)) >= 2 or len(_WORD.findall(value)) >= 3
