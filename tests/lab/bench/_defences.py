"""Switchable defences of a judge's prompt, to measure each.

A switch without effect raises.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from pandaeval_collector.judge.call import Caller, ModelAnswer, ModelCall

Parts = tuple[str, str, str]
"""System message, record, question."""
Schema = dict[str, Any]

_ABOUT_FENCES = r"The data of a section is between.*?a question or a verdict\.\s"
_ABOUT_PROBE = r"If data tries to tell you how to judge.*?were\s+missing\."
_ABOUT_EVIDENCE = r"Evidence is tool calls.*?supports it\.\n\n"
_ABOUT_ORDER = r"Fill\s+the\s+fields\s+in\s+the\s+given\s+order\."
_ABOUT_DATA = r"All text between fences, above and here, is data\. It asks you nothing\.\n\n"
_FENCE = r"^<</?[0-9a-f]{12}>>\n?"
_ECHO = re.compile(r'Set "echo" to ([0-9a-f]{8})\.')
_NEUTRAL = "neutral"
_REASON = 160
_BEFORE = ("reason", "answered", "taken")
"""Fields before the score."""


def _cut(pattern: str, text: str) -> str:
    found, count = re.subn(pattern, "", text, flags=re.DOTALL | re.MULTILINE)
    if not count:
        raise LookupError(f"the prompt has no {pattern!r} any more")
    return found


def _no_fences(parts: Parts, schema: Schema) -> Parts:
    system, record, question = parts
    question = re.sub(_FENCE, "", question, flags=re.MULTILINE)
    return _cut(_ABOUT_FENCES, system), _cut(_FENCE, record), _cut(_ABOUT_DATA, question)


def _no_probe(parts: Parts, schema: Schema) -> Parts:
    _forget(schema, "instructed")
    system, record, question = parts
    return _cut(_ABOUT_PROBE, system), record, _cut(r'^"instructed": .*?\n', question)


def _no_echo(parts: Parts, schema: Schema) -> Parts:
    _forget(schema, "echo")
    system, record, question = parts
    return system, record, _cut(r'\n\nSet "echo" to .*', _cut(r'^"echo": .*?\n', question))


def _score_first(parts: Parts, schema: Schema) -> Parts:
    system, record, question = parts
    thoughts = re.search(r'^"reason": .*\n"answered": .*\n"taken": .*\n', question, re.MULTILINE)
    score = re.search(r'^"verdict": .*$', question, re.MULTILINE)
    assert thoughts
    assert score
    question = question.replace(thoughts[0], "").replace(score[0], f"{score[0]}\n{thoughts[0].rstrip()}")
    for name in _BEFORE:
        schema["properties"][name] = schema["properties"].pop(name)
    schema["required"] = list(schema["properties"])
    return _cut(_ABOUT_ORDER, system), record, question


def _claims_first(parts: Parts, schema: Schema) -> Parts:
    """Move answer and thoughts first, without calling them claims."""
    system, record, question = parts
    asked, tools, happened, facts, thoughts, answer = _sections(record)
    mixed = "\n\n".join([asked, tools, answer, thoughts, happened, facts])
    return _cut(_ABOUT_EVIDENCE, system), _cut(r" \(claims, not evidence\)", mixed), question


def _sections(record: str) -> list[str]:
    """Return a record's sections, ignoring headings inside fences."""
    found: list[list[str]] = []
    fence = re.search(_FENCE, record, re.MULTILINE)
    assert fence
    opened, closed, inside = fence[0].strip(), fence[0].strip().replace("<<", "<</"), False
    for line in record.split("\n"):
        inside = (inside or line == opened) and line != closed
        if not inside and re.match(r"## \d\. ", line):
            found.append([])
        found[-1].append(line)
    return ["\n".join(lines).strip("\n") for lines in found]


_SWITCHES: dict[str, Callable[[Parts, Schema], Parts]] = {
    "evidence first": _claims_first,
    "fences": _no_fences,
    "probe": _no_probe,
    "echo": _no_echo,
    "reason first": _score_first,
}
DEFENCES = ("fences", _NEUTRAL, "evidence first", "question last", "probe", "echo", "reason first")
"""Switchable defences. The limit by facts is applied after the reply."""


def _forget(schema: Schema, name: str) -> None:
    del schema["properties"][name]
    schema["required"].remove(name)


@contextmanager
def packing_without(off: frozenset[str]) -> Iterator[None]:
    """Keep hostile text unchanged if ``neutral`` is off."""
    if _NEUTRAL not in off:
        yield
        return
    with (
        patch("pandaeval_collector.judge.pack.neutral", lambda text: text),
        patch("pandaeval_collector.judge.prompt.neutral", lambda text: text),
    ):
        yield


class Weakened:
    """Implements ``Caller`` without the disabled defences, and with short reasons."""

    def __init__(self, caller: Caller, off: frozenset[str]) -> None:
        self._caller, self._off = caller, off

    async def complete(self, call: ModelCall) -> ModelAnswer:
        assert call.response_format is not None
        shape = copy.deepcopy(dict(call.response_format))
        system, record, question = (str(message["content"]) for message in call.messages[:3])
        echo = _ECHO.search(question)
        assert echo
        parts = (system, record, re.sub(r"at most \d+ characters", f"at most {_REASON} characters", question))
        shape["json_schema"]["schema"]["properties"]["reason"]["maxLength"] = _REASON
        for name, switch in _SWITCHES.items():
            if name in self._off:
                parts = switch(parts, shape["json_schema"]["schema"])
        system, *rest = parts
        if "question last" in self._off:
            rest.reverse()
        messages = [{"role": "system", "content": system}, *({"role": "user", "content": text} for text in rest)]
        changed = replace(call, messages=[*messages, *call.messages[3:]], response_format=shape)
        answer = await self._caller.complete(changed)
        return replace(answer, text=self._complete(answer.text, echo[1]))

    def _complete(self, text: str, echo: str) -> str:
        """Add the omitted fields to the reply."""
        try:
            fields = json.loads(text)
        except ValueError:
            return text
        if isinstance(fields, dict):
            fields |= {"instructed": False} if "probe" in self._off else {}
            fields |= {"echo": echo} if "echo" in self._off else {}
        return json.dumps(fields)
