"""Provider keys by the shapes in ``key_kinds.toml``."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

_KINDS: dict[str, str] = tomllib.loads(Path(__file__).with_name("key_kinds.toml").read_text(encoding="utf-8"))
KINDS = tuple(_KINDS)
KEYS = re.compile(r"(?<![\w-])(?:" + "|".join(_KINDS.values()) + ")", re.ASCII)
"""All kinds of keys. Without groups, because a search with groups takes ten times as long."""
STRETCHES = re.compile(r"[\w.~:+/=-][\w.~:+/=-]{15,}", re.ASCII)
"""Possible places of a key: long stretches without a space, which are rare in ordinary text."""
ESCAPES = re.compile(r"(?<=\\)(?:[nrt]|u00[0-9A-Fa-f]{2})|(?<=%)[0-9A-F]{2}|(?<=\[)[0-9;]{1,8}m")
"""What a stretch may begin with that is no part of a key: the rest of an escaped character or of a colour."""


def kind_of(key: str) -> str:
    return next(kind for kind, shape in _KINDS.items() if re.match(shape, key, re.ASCII))
