"""Parses a prompt for a scripted judge, and compares words and values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from support.scripted_judge import question_in, record_of

_SECTION = re.compile(r"^## \d+\. (.+)$", re.MULTILINE)
_FENCE = re.compile(r"^<</?[0-9a-f]{12}>>$", re.MULTILINE)
_GIVEN = re.compile(r"^(\w+): (.+)$", re.MULTILINE)
_STEP = re.compile(r"^call (\d+): (?!as call \d)(\S+)", re.MULTILINE)
_ASKED = re.compile(r"^turn \d+(?: \([^)]*\))?, the user said: ", re.MULTILINE)
_ANSWERED = re.compile(r"^turn \d+, the agent answered: ", re.MULTILINE)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_NAMED = re.compile(r"\b(?=\w*-?\d)[A-Za-z]{1,4}-?\d{2,}\b")
_LISTED = re.compile(r"(?<![\w.])\d{1,2}[.)]\s")
_WORD = re.compile(r"[^\W\d_]+")
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
GIVES_UP = re.compile(
    r"\b(?:unable to|cannot|can't|could not|couldn't|not able to)\b.{0,30}\b(?:help|do|assist|that|this)\b"
    r"|\b(?:contact|call|reach out to)\b.{0,30}\b(?:support|service|us|clinic|shop|library|desk|office)\b",
    re.IGNORECASE,
)
_STOP = frozenset(
    """
    a all an and any are as at be by can could did do does for from get give had has have how i if in is it its like
    many may me much my no not of on one or other our out please same should so some take tell than that the their them
    then there they this to today up was we were what when where which while who will with would you your use used find
    make long will also day that next week
    """.split()  # noqa: SIM905 - a list of words to be read
)
_SMALL = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
NOT_CAPTURED = "(not captured)"


def stems(text: str) -> set[str]:
    words = (word.casefold() for word in _WORD.findall(text))
    return {_stem(word) for word in words if len(word) > 2 and word not in _STOP}


def _stem(word: str) -> str:
    for ending in ("ations", "ation", "ings", "ing", "ies", "ers", "est", "ed", "es", "er", "s", "y", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def values(text: str, spelled_out: bool = True) -> set[str]:
    """Return comparable numbers and names with digits."""
    text = _LISTED.sub(" ", text)
    numbers = {f"{float(each):g}" for each in _NUMBER.findall(text)}
    words = _SMALL if spelled_out else ()
    spelled = {str(at) for at, word in enumerate(words) if re.search(rf"\b{word}\b", text, re.IGNORECASE)}
    return numbers | spelled | {each.casefold() for each in _NAMED.findall(text)}


@dataclass(frozen=True)
class Step:
    number: int
    name: str
    arguments: str
    result: str


@dataclass(frozen=True)
class Record:
    """A parsed prompt. ``given``: facts beside the question."""

    sections: Mapping[str, str]
    given: Mapping[str, Any]
    question: str

    def messages(self, head: re.Pattern[str]) -> list[str]:
        """Return the messages of several turns, in order."""
        happened = self.of("WHAT HAPPENED")
        return [re.split(r"\n\n|\n(?:call|turn) \d", happened[each.end() :])[0] for each in head.finditer(happened)]

    @property
    def asked(self) -> str:
        return self.of("WHAT THE USER ASKED") or "\n".join(self.messages(_ASKED))

    def of(self, title: str) -> str:
        return "\n".join(text for name, text in self.sections.items() if name.startswith(title))

    @property
    def task(self) -> str:
        return str(self.given.get("task") or self.given.get("user_input") or self.asked)

    @property
    def answer(self) -> str:
        return self.of("WHAT THE AGENT ANSWERED") or "".join(self.messages(_ANSWERED)[-1:])

    @property
    def context(self) -> str:
        return self.of("THE AGENT'S INSTRUCTIONS") + self.of("THE CONVERSATION BEFORE") + self.asked

    @property
    def steps(self) -> list[Step]:
        happened = self.of("WHAT HAPPENED")
        starts = [*_STEP.finditer(happened)]
        ends = [*[each.start() for each in starts[1:]], len(happened)]
        return [_step(each, happened[each.end() : end]) for each, end in zip(starts, ends, strict=False)]

    @property
    def tools(self) -> dict[str, str]:
        lines = (line.partition("(") for line in self.of("TOOLS THAT THE AGENT HAD").splitlines())
        return {name.strip(): rest.partition("): ")[2] for name, opened, rest in lines if opened and name.strip()}


def _step(head: re.Match[str], body: str) -> Step:
    arguments = re.search(r"^arguments: (.*)$", body, re.MULTILINE)
    result = body.partition("\nresult: ")[2].strip()
    failed = re.search(r"^FAILED: (.*)$", body, re.MULTILINE)
    return Step(
        int(head[1]), head[2], arguments[1] if arguments else NOT_CAPTURED, result or (failed[1] if failed else "")
    )


def read(messages: Sequence[Mapping[str, str]]) -> Record:
    """Parse a prompt."""
    record, question = record_of(messages), question_in(messages)
    starts = [*_SECTION.finditer(record)]
    ends = [each.start() for each in starts[1:]] + [len(record)]
    sections = {
        each[1]: _FENCE.sub("", record[each.end() : end]).strip() for each, end in zip(starts, ends, strict=True)
    }
    data = question.partition("also data:\n")[2].partition("All text between fences")[0]
    return Record(sections, {name: _value(text) for name, text in _GIVEN.findall(data)}, question)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def serves(name: str, record: Record, asked: set[str]) -> bool:
    """Return whether a tool shares a word with the task."""
    return bool((stems(spaced(name)) | stems(record.tools.get(name, ""))) & asked)


def strange(arguments: str, shown: str) -> Iterator[str]:
    known, words = values(shown), stems(shown)
    for leaf in _leaves(_value(arguments)):
        if values(leaf) - known or (not values(leaf) and stems(leaf) and not stems(leaf) & words):
            yield leaf


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _leaves(each)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def spaced(name: str) -> str:
    return " ".join(_PARTS.findall(name))
