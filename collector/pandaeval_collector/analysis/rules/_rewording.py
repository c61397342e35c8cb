"""The same thing asked for again in other words, where the answer holds nothing that was not known."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from pandaeval_collector.analysis.rules._content import is_empty, pieces, unseen_share
from pandaeval_collector.analysis.rules._failures import failed
from pandaeval_collector.analysis.rules._repeats import Step
from pandaeval_collector.analysis.rules._verbs import Nature, nature
from pandaeval_otel.model import ToolCall

_LEAST_CALLS = 3
"""A tool that was called less often is not looked at: one attempt in other words is common sense."""
UNSEEN = 0.05
"""A result with at most this share of unseen content brings nothing new."""
_ALIKE, _ALIKE_UNANSWERED = 0.5, 0.75
"""The share of the shorter request's words that have to stand in the other one; and where both found nothing."""
_MANY = 32
"""Requests in which :func:`may_reword` looks for two alike: with more it takes them for granted."""
_COMPARED = 4
"""Requests of a subject that a new one is compared with: the first and the latest ones."""
_SUBJECTS = 48
"""Subjects that a request is compared with: the latest ones."""
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
    """``words``: of its free texts; ``names``: those of them that are numbers, codes or written like names. Both are
    read when a second request is compared with it."""

    texts: list[str]
    words: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()

    def read(self) -> None:
        """Reads the words, once."""
        if self.texts:
            self.words, self.names = _words_of(self.texts)
            self.texts = []


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
    counts = Counter(step.call.name for step in steps)
    subjects: dict[tuple[str, str], list[_Subject]] = {}
    for step in steps:
        if counts[step.call.name] >= _LEAST_CALLS and step.nature is Nature.READING and step.signature is not None:
            _place(step, step.signature, subjects)


def may_reword(calls: Sequence[ToolCall]) -> bool:
    """Whether :func:`mark_rewordings` could find anything in calls: two alike, of a tool that was called thrice."""
    times = Counter(call.name for call in calls)
    groups: dict[tuple[str, str], list[_Request]] = {}
    for call in calls:
        if times[call.name] < _LEAST_CALLS or not call.has_result or nature(call.name) is Nature.CHANGING:
            continue
        if _free_text(call.arguments):
            texts, fixed = _parts(call.arguments)
            request = _Request(texts)
            earlier = groups.setdefault((call.name, fixed), [])
            if len(earlier) >= _MANY or _alike(request, earlier, _ALIKE):
                return True
            earlier.append(request)
    return False


def _free_text(arguments: Any) -> bool:
    """Whether arguments hold a text of several words, so that the same may be asked in other ones."""
    if isinstance(arguments, dict):
        return any(isinstance(value, str) and _is_free(value) for value in arguments.values())
    return isinstance(arguments, str) and _is_free(arguments)


def _place(step: Step, signature: str, subjects: dict[tuple[str, str], list[_Subject]]) -> None:
    call = step.call
    if not (call.has_arguments and call.has_result) or not _free_text(call.arguments) or failed(call):
        return
    texts, fixed = _parts(call.arguments)
    request, said = _Request(texts), None
    found = subjects.setdefault((signature.rpartition("\0")[0], fixed), [])
    for subject in found:
        if subject.turn != step.turn or not _alike(request, subject.requests, _ALIKE) or not subject.is_read():
            continue
        said = pieces(call.result) if said is None else said
        if said is None:
            return
        if subject.empty and is_empty(said) and not _alike(request, subject.requests, _ALIKE_UNANSWERED):
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
    if len(found) > _SUBJECTS:
        del found[0]


def _alike(request: _Request, others: Sequence[_Request], least: float) -> bool:
    request.read()
    for other in others:
        other.read()
        shorter = min(len(request.words), len(other.words))
        if not (request.names <= other.words and other.names <= request.words):
            continue
        if shorter and len(request.words & other.words) >= least * shorter:
            return True
    return False


def _words_of(texts: Sequence[str]) -> tuple[frozenset[str], frozenset[str]]:
    words: set[str] = set()
    names: set[str] = set()
    for text in texts:
        for place, word in enumerate(_WORD.findall(text)):
            plain = _stem(word.casefold())
            if plain in _FILLERS:
                continue
            words.add(plain)
            if (not word.isalpha() and any(sign.isdigit() for sign in word)) or (place and word[:1].isupper()):
                names.add(plain)
    return frozenset(words), frozenset(names)


def _stem(word: str) -> str:
    for ending, instead in (("ing", ""), ("ies", "y"), ("es", ""), ("s", "")):
        if len(word) > len(ending) + 3 and word.endswith(ending):
            return word[: -len(ending)] + instead
    return word


def _parts(arguments: Any) -> tuple[list[str], str]:
    """The free texts, and all else: which free texts there are, and what stands in the others."""
    named = {"": arguments} if isinstance(arguments, str) else arguments if isinstance(arguments, dict) else {}
    texts: list[str] = []
    fixed: list[tuple[str, str | None]] = []
    for key, value in named.items():
        if value is None or value == "":
            continue
        if _is_free(value):
            texts.append(value)
            fixed.append((str(key), None))
        else:
            fixed.append((str(key), repr(value)))
    return texts, repr(sorted(fixed, key=itemgetter(0)))


def _is_free(value: Any) -> bool:
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST or value.lstrip()[:1] in ("{", "["):
        return False
    return len(value.split(None, 2)) >= 2 or len(_WORD.findall(value)) >= 3
