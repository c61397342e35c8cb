"""Cleans external error texts, which may quote secrets."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from pandaeval_collector.base.untrusted.printable import printable
from pandaeval_collector.base.untrusted.secrets import redact

_TRACEBACK = "Traceback (most recent call last)"
_LONGEST_OBJECT = 4000
LONGEST = 300
"""Characters of a foreign error that are shown."""
_SAYS = ("message", "error", "error_message", "detail", "details", "reason")
_DEPTH, _MOST = 4, 2
_FRAME = re.compile(
    r"\n[^\S\n]{1,20}(?:\.{3} \d{1,5} more|at (?:[^\n()]{1,200}\()?"
    r"(?:[^\n()]{1,300}:\d{1,7}(?::\d{1,7})?|native|<anonymous>|Native Method|Unknown Source)\)?)"
    r"[^\S\n]{0,20}(?=\n|\Z)"
)
"""A line of a JavaScript or JVM stack, as ``at run (file:///app.mjs:4:2)`` or ``at com.shop.Run.go(Run.java:12)``."""
_LOOKED_AT = 20_000

_SECRET_VARIABLE = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE)S?(?:_|$)|APIKEY", re.IGNORECASE)
_SHORTEST, _SHORTEST_NAMED = 8, 4
"""Minimum characters of a variable's value, because shorter values appear in ordinary words. For known keys, less."""

# Stricter than for traces, because hiding a harmless word does no harm here. The text of a pattern's group is kept.
_PATTERNS = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for kind, pattern in (
        ("address", r"(\b[a-z][a-z0-9+.-]{0,30}://)[^\s/@\"'<>]{1,400}(?=@)"),
        ("key", r"()(?<![A-Za-z0-9])(?:sk|pk|rk|ak)[-_][A-Za-z0-9_*.…-]{3,}"),
        ("key", r"(\b(?:bearer|basic|token)\s{1,4})(?!\[secret)(?=[^\s,;\"']{0,60}[0-9_*.=-])[^\s,;\"']{6,}"),
        (
            "key",
            r"(\b(?:proxy-)?authorization\\*[\"']?\s{0,4}[:=]\s{0,4}\\*[\"']?(?:(?:bearer|basic|token|digest)\s{1,4})?)"
            r"(?!\[secret|bearer\b|basic\b|token\b|digest\b)[^\s,;\"'}\]]+",
        ),
        (
            "key",
            r"((?:api|access|secret|private|auth|subscription)[ _-]?(?:key|token)(?:\s(?:provided|given|used|passed))?"
            r"\\*[\"']?\s{0,4}[:=]\s{0,4}\\*[\"']?)(?!\[secret)[^\s,;\"'&}\]]+",
        ),
        (
            "key",
            r"([?&;](?:[a-z0-9]{1,20}[_-])?(?:key|token|sig|signature|secret|password|code|auth|credential)=)"
            r"(?!\[secret)[^\s&\"'<>]+",
        ),
    )
)


def plain_error(text: str) -> str:
    """Shorten an error to about 300 characters on one line, without stacks. Never raises."""
    text = _without_frames(text)
    before, stack, after = text.partition(_TRACEBACK)
    if stack:
        lines = [line for line in after.splitlines() if line.strip()]
        text = before if before.strip() else lines[-1] if len(lines) > 1 else text
    line = unwrapped(" ".join(text.split()))
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def _without_frames(text: str) -> str:
    """Remove the frames of JavaScript and JVM stacks, and a line that only repeats the error before it."""
    if len(text) > _LOOKED_AT or _FRAME.search(text) is None:
        return text
    first, _, rest = _FRAME.sub("", text).strip().partition("\n")
    lines = map(str.strip, rest.splitlines())
    kept = [line for line in lines if not line.endswith(first.strip()) and not line.startswith("at ")]  # a cut frame
    return "\n".join([first, *kept])


def unwrapped(line: str) -> str:
    """Replace a trailing object by its error text. Never raises."""
    before, brace, _ = line.partition("{")
    held, text = None, line[len(before) :]
    for read in (json.loads, ast.literal_eval) if brace and len(text) <= _LONGEST_OBJECT else ():
        with suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            held = read(text)
            break
    texts = dict.fromkeys(_texts(held, _DEPTH))
    if error_text := ": ".join([" ".join(text.split()) for text in texts][:_MOST]):
        return f"{before.rstrip()} {error_text}" if before.strip() else error_text
    return line


def _texts(value: Any, depth: int) -> Iterator[str]:
    if not isinstance(value, dict) or depth == 0:
        return
    for key in _SAYS:
        held = value.get(key)
        if isinstance(held, str) and held.strip():
            yield held
    for held in value.values():
        yield from _texts(held, depth - 1)


def told(text: object, known: Iterable[str] = ()) -> str:
    """Shorten text to :data:`LONGEST` characters on one line, without secrets and control characters.

    ``known``: secrets without a shape.
    """
    whole = str(text).partition(_TRACEBACK)[0]
    if len(whole) > _LOOKED_AT:
        whole = whole[:_LOOKED_AT].rpartition(" ")[0]  # a secret that is cut through would not be recognised
    flat = printable(unwrapped(" ".join(whole.split())))
    for secret in sorted({form for each in known for form in (each, quote(each, safe=""))}, key=len, reverse=True):
        flat = flat.replace(secret, "[secret: key]")
    flat = redact(flat)
    for pattern, kind in _PATTERNS:
        flat = pattern.sub(rf"\1[secret: {kind}]", flat)
    return flat if len(flat) <= LONGEST else f"{flat[: LONGEST - 1]}…"


def explained(error: BaseException, known: Iterable[str] = ()) -> str:
    return told(f"{type(error).__name__}: {error}", known)


def secrets_in(environ: Mapping[str, str], *names: str | None) -> tuple[str, ...]:
    """Return secret environment values: of ``names``, and of variables named like a secret (``HF_TOKEN``)."""
    named = {environ[name] for name in names if name and len(environ.get(name, "")) >= _SHORTEST_NAMED}
    others = {each for name, each in environ.items() if len(each) >= _SHORTEST and _SECRET_VARIABLE.search(name)}
    return tuple({form for each in named | others for form in (each, each.strip()) if len(form) >= _SHORTEST_NAMED})
