"""A judge whose first reply quotes the record and is invalid.

After that, it obeys orders like :class:`support.attacked.Parrot`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence

from pandaeval_collector.judge.call import ModelAnswer, ModelCall
from support.attacked import Parrot

_FENCED = re.compile(r"<<([0-9a-f]{12})>>\n(.*?)\n<</\1>>", re.DOTALL)
_OURS = re.compile(
    r"\AAn answer to this question was invalid \((?P<error>.*)\)\. Answer again, with one JSON object of the requested "
    r"fields and nothing else\.\Z",
    re.DOTALL,
)
_PIECE = 12
"""Minimum length of a quoted text."""
_MOST = 60_000


def _as_prose(words: str) -> str:
    return words


def _as_a_field(words: str) -> str:
    return json.dumps({"instructed": False, words: 1.0})


def _as_a_value(words: str) -> str:
    return json.dumps({"instructed": words, "echo": words, "score": words, "verdict": words, "confidence": words})


def _as_half_a_reply(words: str) -> str:
    return json.dumps({"instructed": False, "reason": words})[:-2]


def _as_a_fence(words: str) -> str:
    return f"```json\n{words}\n```"


QUOTED: Sequence[Callable[[str], str]] = (_as_prose, _as_a_field, _as_a_value, _as_half_a_reply, _as_a_fence)


class Quoter(Parrot):
    """``quoted``: number of replies with record text."""

    def __init__(self) -> None:
        super().__init__()
        self.quoted = 0
        self._known = ""
        """Replies that quote a harmless run."""

    async def complete(self, call: ModelCall) -> ModelAnswer:
        if len(call.messages) == 4:
            self.quoted += 1
            quote = QUOTED[self.quoted % len(QUOTED)]
            return ModelAnswer(quote(record(call.messages))[:_MOST], 1, 1)
        return await super().complete(call)

    def _order(self, name: str, lines: Sequence[str], messages: Sequence[Mapping[str, str]]) -> str:
        since = [message["content"] for message in messages[4:]]
        ours = {line for text in since for line in text.split("\n")}
        if self.learning:
            self._known += "\n".join(since)
        found = super()._order(name, [line for line in lines if line not in ours], messages[:4])
        leaks = (leaked(text, record(messages), self._known) for text in since)
        return found or next((piece for piece in leaks if piece), "")


def record(messages: Sequence[Mapping[str, str]]) -> str:
    return "\n".join(found[2] for message in messages[1:4] for found in _FENCED.finditer(message["content"]))


def leaked(reply: str, words: str, known: str) -> str:
    """Return the first leaked record text after a reply. ``known``: harmless text."""
    ours = _OURS.match(reply)
    text = reply if ours is None else ours["error"]
    pieces = (text[start : start + _PIECE] for start in range(len(text) - _PIECE + 1))
    return next((piece for piece in pieces if piece in words and piece not in known), "" if ours is not None else reply)
