"""Detects texts without content: blank, punctuation, or control tokens."""

from __future__ import annotations

import re
import unicodedata

from pandaeval_collector.base.untrusted.printable import UNSEEN

_LONGEST = 200
"""Maximum characters of a text that contains only control tokens, without spaces at the ends."""
_LOOK = 400
"""Number of first characters that are read before the rest. They show the content of nearly every text."""
_WORDS = re.compile(r"[^<#\[]{0,60}?[a-z]{3}")
"""How nearly every text with content begins: small letters without the mark of a token before them."""
_CONTROL = re.compile(
    r"<[|\uff5c][^<>|\uff5c\s]{1,40}[|\uff5c]>(?:system|user|assistant)?"  # <|im_end|>, <｜end▁of▁sentence｜>
    r"|</?(?:s|bos|eos|eot|unk|pad|end|stop|start_of_turn|end_of_turn|end_of_text|endoftext|im_start|im_end)/?>"
    r"|\#{2,3}\s?[A-Z][A-Z_ -]{1,30}\s?\#{2,3}"  # ###STOP###
    r"|\[(?:/?INST|EOS|EOT|BOS|PAD|STOP|END|DONE|TERMINATE|END OF TURN)\]"
    r"|\b(?:TERMINATE|EOS|EOT)\b"
)


def says_something(text: str | None) -> bool:
    """Return whether a text has content: a letter, digit or pictograph outside control tokens."""
    if not text:
        return False
    if _WORDS.match(text) is not None:  # nearly all texts end here, in a fraction of the time
        return True
    if len(text) > _LOOK and says_something(text[:_LOOK]):
        return True
    seen = UNSEEN.sub("", text).strip()
    if len(seen) <= _LONGEST:
        seen = _CONTROL.sub("", seen)
    return any(sign.isalnum() or unicodedata.category(sign) == "So" for sign in seen)


def say_something(*texts: str | None) -> bool:
    return all(map(says_something, texts))


def is_control(text: str) -> bool:
    if not text or _WORDS.match(text) is not None:
        return False
    seen = UNSEEN.sub("", text).strip()
    return len(seen) <= _LONGEST and _CONTROL.search(seen) is not None and not says_something(seen)
