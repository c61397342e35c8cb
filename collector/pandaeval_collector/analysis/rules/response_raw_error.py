"""Whether an answer is nothing but the text of an error that was meant for programmers."""

from __future__ import annotations

import re

_RAW = re.compile(
    r"Traceback \(most recent call last\):.*^[\w.]+(?::[^\n]*)?|"
    r"(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): [^\n]+|"
    r"Error code: \d{3} - \{.*\}|"
    r"Agent stopped due to (?:max iterations|iteration limit or time limit)\.?",
    re.DOTALL | re.MULTILINE,
)
_ASKED = re.compile(r"error|exception|traceback|stack ?trace|fehler|erreur|debug|log\b", re.IGNORECASE)
_LONGEST = 20_000


def raw_error(answer: str, user: str | None) -> str:
    """The last line of an answer that is a traceback, an exception or a framework's word that it gave up, and nothing
    else; empty for every other answer, and where the user asked about errors."""
    text = answer.strip()
    if len(text) > _LONGEST or _ASKED.search(user or "") or _RAW.fullmatch(text) is None:
        return ""
    return text.splitlines()[-1].strip()
