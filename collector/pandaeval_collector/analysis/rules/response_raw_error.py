"""Whether an answer is what a program or a framework says of its own failure, and not a word to the user."""

from __future__ import annotations

import re

_STACK = "Traceback (most recent call last):"
_OF_STACK = re.compile(r"[ \t].*|[\w.]+(?:: .*)?|The above exception was .*:|During handling of .*:|")
_RAW = re.compile(
    r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*[a-z](?:Error|Exception): .{1,300}"
    r"|Error code: [45]\d\d - \{.*\}"
    r"|Agent stopped due to (?:max iterations|iteration limit or time limit)\.?"
)
_ABOUT_ERRORS = re.compile(r"error|exception|traceback|stack ?trace|\braise|\bbug|crash|\bfail|\bcode\b", re.IGNORECASE)
_LONGEST = 8000


def is_raw_error(answer: str, asked: str) -> bool:
    """Whether the whole answer is such a text: a traceback, one line of an exception, a provider's refusal, a framework
    that gave up. Where the user asks about errors or code, it may be what was wanted. Linear in the texts."""
    text = answer.strip()
    if len(text) > _LONGEST or _ABOUT_ERRORS.search(asked):
        return False
    return (text.startswith(_STACK) and _is_stack(text)) or _RAW.fullmatch(text) is not None


def _is_stack(text: str) -> bool:
    return all(line == _STACK or _OF_STACK.fullmatch(line) for line in text.splitlines())
