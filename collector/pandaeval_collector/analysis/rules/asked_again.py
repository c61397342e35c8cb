"""Detects user messages that request an earlier answer again, or reject it."""

from __future__ import annotations

import re

from pandaeval_collector.analysis.stats.topic import content_tokens
from pandaeval_otel.model import Trace

_BY_SIGN = {
    "again": "again",
    "e more": "once more|one more time",
    "repeat": r"repeat(?: (?:it|that|this))?",
    **{f"re{word}": f"re{word}" for word in ("send", "check", "confirm", "phrase", "state")},
    "re-": r"re-(?:send|check|confirm|phrase|state)",
    "double": "double[- ]check",
    "i said": "as i said|like i said",
    "still": "still|are you still there",
    "hello?": r"hello\?",
    "you there": "are you there",
    **{word: word for word in ("instead", "actually", "another", "changed my mind", "also", "as well", "in addition")},
    "anyway": "anyways?",
    **{words: words for words in ("any way", "at least", "are you sure")},
    "reconsider": r"reconsider\w*",
    "exception": "(?:an|any) exceptions?",
    "nochmal": "nochmals?",
    "wiederhol": r"wiederhol\w*",
    "encore": "encore(?: une fois)?",
    "repit": r"repit\w*",
    "ripet": r"ripet\w*",
    **{words: words for words in ("noch einmal", "immer noch", "stattdessen", "toujours", "otra vez", "de nuevo")},
    **{words: words for words in ("en cambio", "di nuovo", "ancora", "de novo", "ainda")},
}
"""ASCII patterns, each under a lower-case text that all its matches contain."""
_SIGNS = tuple(_BY_SIGN)
_AGAIN = re.compile(
    rf"\b(?:{'|'.join(_BY_SIGN.values())}|répét\w*|plutôt|todavía)\b"
    r"|再度|もう一度|再び|还是|再(?:说|来|发)?一[遍次]|다시|ещё раз|снова|повтор",
    re.IGNORECASE,
)
_LONGEST = 2_000
"""Characters at the end of a message that are read."""
_MOST_WORDS = 48


def asks_again(trace: Trace) -> bool:
    """Return whether the last user message requests a repeat, another version or more, or insists."""
    asked = _question(trace)
    if asked.isascii() and not any(map(asked.lower().__contains__, _SIGNS)):
        return False  # the usual case, in a tenth of the time of the search
    return _AGAIN.search(asked) is not None


def asked_words(trace: Trace) -> str:
    return " ".join(sorted(content_tokens(_question(trace)))[:_MOST_WORDS])


def _question(trace: Trace) -> str:
    asked = trace.turns[-1].user if trace.turns else trace.input
    return str(asked or "")[-_LONGEST:]
