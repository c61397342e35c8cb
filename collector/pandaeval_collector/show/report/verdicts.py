"""A session's score in words, where the score alone would say more than is known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

INLINE = "inline"
"""``metadata.basis`` of a session's score that rests on metrics without a model."""
_CHECKS = re.compile(r"rule checks: \d+ of \d+ failed; task success: not judged")
"""How the reason of ``agent_reliability`` begins where no judge had a part."""
_SAID = {"problem_found": "problem found", "no_problem_found": "no problem found"}


def is_inline(metadata: Mapping[str, Any] | None) -> bool:
    """Whether a session's score rests on metrics without a model alone."""
    return (metadata or {}).get("basis") == INLINE


def verdict(label: str | None) -> str:
    """What such a score says, in a word or three."""
    return _SAID.get(label or "", (label or "").replace("_", " "))


def spelled_out(label: str | None, reason: str) -> str:
    """What such a score says and does not say: how many of its rule checks failed, by its ``reason``."""
    told = _CHECKS.match(reason)
    return told[0] if told is not None else f"{verdict(label)} by rule checks; task success: not judged"
