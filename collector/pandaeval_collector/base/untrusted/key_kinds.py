"""Provider keys by the shapes in ``key_kinds.toml``."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

_KINDS: dict[str, str] = tomllib.loads(Path(__file__).with_name("key_kinds.toml").read_text(encoding="utf-8"))
KINDS = tuple(_KINDS)
KEYS = re.compile(r"(?<![\w-])(?:" + "|".join(_KINDS.values()) + ")", re.ASCII)
"""All of them. It has no groups: a search that notes groups takes ten times as long."""
STRETCHES = re.compile(r"[\w.~:+/=-][\w.~:+/=-]{15,}", re.ASCII)
"""Where a key may stand: ordinary text has few stretches so long without a space."""
ESCAPES = re.compile(r"(?<=\\)(?:[nrt]|u00[0-9A-Fa-f]{2})|(?<=%)[0-9A-F]{2}|(?<=\[)[0-9;]{1,8}m")
"""What a stretch may begin with that is no part of a key: the rest of an escaped character or of a colour."""


def kind_of(key: str) -> str:
    return next(kind for kind, shape in _KINDS.items() if re.match(shape, key, re.ASCII))
