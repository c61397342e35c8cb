"""Names of earlier versions, with their replacements (``removed.toml``)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal


@cache
def removed(kind: Literal["keys", "commands"]) -> Mapping[str, str]:
    """Return sentences that name the replacement, by name of a key, command or option of an earlier version."""
    import tomllib  # only an error needs it

    text = Path(__file__).with_name("removed.toml").read_text(encoding="utf-8")
    sentences: Mapping[str, str] = tomllib.loads(text)[kind]
    return sentences
