"""Makes trace content harmless for a prompt."""

from __future__ import annotations

import re

from pandaeval_collector.base.untrusted.printable import UNSEEN
from pandaeval_collector.judge.shorten import elided

_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ue000-\uf8ff\U000f0000-\U0010ffff]")
"""Control characters, invisible line separators, lone surrogates and private-use characters."""
_FENCE = re.compile(
    r"(?:[<\uff1c\u2039]\s?[<\uff1c\u2039]|[\u00ab\u300a])\s*+([/\u2044\u2215\uff0f]?+)\s*+(code|[0-9a-f]{6,})\s*"
    r"(?:[>\uff1e\u203a]\s?[>\uff1e\u203a]?|[\u00bb\u300b])",
    re.IGNORECASE,
)
"""Imitations of our fences, with any similar brackets."""
_TURN = re.compile(
    r"<(?=[|\uff5c])"
    r"|<(?=/?(?:s|bos|eos|unk|pad|think|tool_call|tool_response|function_call|im_start|im_end|im_sep|start_of_turn|"
    r"end_of_turn|start_of_image|start_header_id|end_header_id|system|assistant|user|sop|eop|beginning_of_sentence|"
    r"end_of_sentence|function_results|(?:extra_id|reserved|reserved_token)_\d+)>)"
    r"|<(?=</?SYS>>)"
    r"|\[(?=/?(?:INST|gMASK|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|ASSISTANT|SYSTEM)\])",
    re.IGNORECASE,
)
"""Beginnings of tokens that separate turns in chat templates. Some servers also interpret them in content, so a tool
result could end our message."""
_DATA_URI = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,[A-Za-z0-9+/=\r\n]{40,}")
_BASE64 = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/]{200,}={0,2}(?![\w+/=-])")
_URL = re.compile(r"\b(?:https?|ftp|file|s3|gs)://((?:[\w.~:/?#@!$&*+=%-]*[\w/#=%-])?)", re.IGNORECASE | re.ASCII)
"""A link up to its last ASCII letter, digit or slash, without punctuation after it."""
_MAX_URL = 200


def neutral(text: str) -> str:
    """Remove invisible and control characters, blobs, links, and imitations of fences, with a note."""
    text = _UNPRINTABLE.sub(" ", UNSEEN.sub("", text))
    text = _DATA_URI.sub(lambda found: f"[binary, {len(found.group())} characters]", text)
    text = _BASE64.sub(lambda found: f"[binary, {len(found.group())} characters]", text)
    text = _URL.sub(lambda found: f"[link {elided(found.group(1), _MAX_URL)}]", text)
    text = _FENCE.sub(lambda found: f"({found[1]}{found[2]})", text)
    return _TURN.sub(lambda found: f"{found.group()} ", text)


def one_line(text: str) -> str:
    return " ".join(text.split())


def escaped(text: str) -> str:
    """Return the text on one line, with spaces kept for code."""
    return "\\n".join(text.splitlines())
