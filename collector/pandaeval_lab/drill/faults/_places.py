"""Chooses a fault's place, and fabricates values."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from random import Random

from pandaeval_collector.analysis.rules._verbs import Nature, nature
from pandaeval_lab.drill.edits import AnswerEdit
from pandaeval_lab.drill.fault import NotApplicableError, Subject
from pandaeval_otel.model import ToolCall

_DONE = re.compile(
    r"\b(?:done|success(?:ful(?:ly)?)?|completed|confirmed|(?:has|have) been|(?:is|are) now|was|were|booked|cancell?ed"
    r"|updated|changed|processed|refunded|sent|created|deleted|added)\b",
    re.IGNORECASE,
)
_IDIOM = (
    r"\d{1,4}-?[A-Za-z]+(?:-[A-Za-z]+)*|\d+x\d+|[A-Za-z]+[-_]?\d{1,2}|[A-Z][a-z]+-?\d+"
    r"|(?:SHA|ISO|RFC|AES|UTF|ERC|EIP|IEEE|HTTP|CVE)[-_]?\d+"
)
IDENTIFIER = re.compile(
    r"(?<![\w.$€£%&/=+-])(?=#?(?:[_-]?[A-Za-z0-9]){5})(?=[\w#-]{0,80}\d)(?=[\w#-]{0,80}[A-Za-z#_])"
    rf"(?!(?:{_IDIOM})(?![\w-]))#?[A-Za-z0-9]++(?:[_-][A-Za-z0-9]++)*\b(?![.:/]\d)"
)
"""Codes of at least five characters with a digit. Not parts of addresses (%20Diego), idioms (7-Day, 1950s, 200x100,
SHA-256) and words with a number (base64): they identify no object."""
AMOUNT = re.compile(r"(?<=[$€£])\d{1,3}(?:,\d{3})*(?:\.\d\d)?\b|(?<=[$€£])\d+(?:\.\d\d)?\b")
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
DATE = re.compile(rf"\b\d{{4}}-\d\d-\d\d\b|\b(?:{_MONTHS}) \d{{1,2}}\b(?!:)")
URL = re.compile(r"https?://[^\s)\]>\"'*]+[\w/]|\b[\w.]{1,64}@[\w-]+(?:\.\w+)+\b")
_TRIES = 40
Make = Callable[[str, Random], str]


def chosen(subject: Subject, rng: Random, what: str, fits: Callable[[ToolCall], bool]) -> int:
    """Return the index of a fitting call. Raises :class:`NotApplicableError`."""
    found = [index for index, call in enumerate(subject.trace.tool_calls) if fits(call)]
    if not found:
        raise NotApplicableError(f"the run has no {what}")
    return rng.choice(found)


def last_change(subject: Subject) -> int:
    """Return the last call's index if it is a change that the answer reports. Raises :class:`NotApplicableError`."""
    calls, hints = subject.trace.tool_calls, {tool.name: tool.read_only for tool in subject.trace.tools}
    is_change = bool(calls) and nature(calls[-1].name, hints.get(calls[-1].name)) is Nature.CHANGING
    if not is_change or calls[-1].error:
        raise NotApplicableError("the run's last call changes nothing")
    if not _DONE.search(subject.answer):
        raise NotApplicableError("the answer does not report a completed action")
    return len(calls) - 1


def with_arguments(call: ToolCall) -> bool:
    """Return whether a call has captured, non-empty arguments."""
    return isinstance(call.arguments, dict) and bool(call.arguments)


def replaced(pattern: re.Pattern[str], what: str, make: Make) -> Callable[[Subject, Random], AnswerEdit]:
    def edit(subject: Subject, rng: Random) -> AnswerEdit:
        known = [each for each in pattern.finditer(subject.answer) if each.group() in subject.known]
        if not known:
            raise NotApplicableError(f"the answer names no {what} that the agent had")
        found = rng.choice(known).group()
        new = unknown(subject, rng, found, make)
        text = re.sub(rf"(?<!\w){re.escape(found)}(?!\w)", lambda _: new, subject.answer)
        return AnswerEdit(text, f"{what} {found} → {new}")

    return edit


def unknown(subject: Subject, rng: Random, old: str, make: Make) -> str:
    """Return a fabricated value that the session lacks. Raises :class:`NotApplicableError`."""
    for _ in range(_TRIES):
        new = make(old, rng)
        if new != old and not subject.knows(new):
            return new
    raise NotApplicableError(f"every other value like {old} is known, too")


def scrambled(old: str, rng: Random) -> str:
    """Return a value with other digits and letters; words of three letters or more stay."""

    def other(found: re.Match[str]) -> str:
        if found["word"]:
            return found[0]
        alphabets = (string.digits, string.ascii_uppercase, string.ascii_lowercase)
        return rng.choice(next(each for each in alphabets if found[0] in each))

    return re.sub(r"(?P<word>[A-Za-z]{3,})|[0-9A-Za-z]", other, old)
