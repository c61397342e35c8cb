"""Secrets without a shape of their own, known by the name that stands before them: ``password: x``, ``TOKEN=x``,
``"apiKey": "x"``, ``--password x``, ``<secret>x</secret>``; in YAML, JSON (also within JSON), environments and prose.

What is said about such a name stays: that a password is wrong or required, how many tokens there were. Every pattern
looks at a bounded stretch of text, or at one that it takes out: a text without end costs time in proportion to it.
"""

from __future__ import annotations

import re

_NAMES = (
    r"(?:pass(?:word|wd|phrase)?|pwd|secret(?:[_-]?(?:key|access[_-]?key))?|client[_-]?secret|api[_-]?key|apikey|"
    r"access[_-]?key|private[_-]?key|credentials?|aws[_-]?secret[_-]?access[_-]?key|account[_-]?key|"
    r"shared[_-]?access[_-]?key|(?:access|auth|bearer|refresh|session|id)[_-]?token|token)"
)
_SPOKEN = r"(?:pass(?:word|wd|phrase|code)|pwd|(?:client |shared )?secret(?:[ _-]key)?|api[ _-]?key|access[ _-]?key)"
"""Names as prose has them."""
_FIELD = re.compile(rf"(?:^|[_-])(?:{_NAMES}|(?:set[_-])?cookies?)$", re.IGNORECASE)
_BEGINNING = re.compile(
    r"(?<![a-moqsu-z0-9\[])(?<!(?<!\\)[nrt])(?=[abciprst])"
    r"(?:pass|pwd|secret|client|api|access|private|credential|aws|account|shared|auth|bearer|refresh|session|id|token)",
    re.IGNORECASE,
)
"""Where a name may begin: not in a word, nor in ``[secret: kind]``, but behind the written end of a line (``\\n``)."""
_NOTHING = (
    r"(?!\[secret|(?:null|none|nil|true|false|yes|no|on|off|ok|required|optional|missing|invalid|wrong|incorrect|valid|"
    r"correct|expired|empty|unset|unknown|changed|reset|string|str|text|password|secret|\*+|x{3,}|\.+|…|-+|\d{1,3})"
    r"(?:[\"'.,;!?)]|\s|\Z)|[$<{%(])"
)
"""Not a word about the name, a mask or a variable."""
_END = r"(?=[ \t]{0,40}(?:#|\r|\n|\\[rn]|\Z))"


def _any_case(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_PATTERNS = (
    rf"({_NAMES}\\*[\"']\s{{0,40}}:\s{{0,40}}\\*[\"'])(?!\[secret)(?:[^\"'\\]|\\[^\"'])+",
    rf"({_NAMES}\s{{0,40}}=\s{{0,40}}\\*[\"']?)(?!\[secret)(?![\"'\\])[^\s\"',;&\])}}]{{4,}}",
    rf"({_SPOKEN}[ \t]{{0,4}}:[ \t]{{0,40}}){_NOTHING}[^\s\"'\\]{{1,400}}{_END}",
    rf"({_NAMES}[ \t]{{0,4}}:[ \t]{{0,40}}\\*[\"'])(?!\[secret)[^\"'\\\r\n]{{1,400}}(?=\\*[\"'])",
    # In the middle of a line: what holds a digit or a sign that words do not have.
    rf"((?:{_SPOKEN}|{_NAMES})[ \t]{{0,4}}:[ \t]{{0,40}}\\*[\"']?)"
    rf"{_NOTHING}(?=[^\s\"'\\,;]{{0,60}}[0-9!@#$%^&*+=~|?])(?!\d{{1,3}}(?![\dA-Za-z]))[^\s\"'\\,;]{{4,400}}",
    rf"({_NAMES}\\*[\"']\s{{0,40}}:\s{{0,40}})\d{{4,}}",
)
_ANYWHERE = tuple(map(_any_case, _PATTERNS))
_BEHIND: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = (
    # Alone on its line with its value: YAML, headers, notes.
    (
        re.compile(r"(?:\A|\n|\\n)[ \t>*-]{0,40}[A-Za-z0-9_.-]{0,40}\Z"),
        _any_case(rf"({_NAMES}[ \t]{{0,4}}:[ \t]{{1,40}}){_NOTHING}[^\s\"'\\]{{1,400}}{_END}"),
    ),
    (
        re.compile(r"--(?:[A-Za-z]{1,20}-)?\Z"),
        _any_case(rf"({_NAMES}[ \t]{{1,4}}\\*[\"']?)(?!\[secret|-)[^\s\"'\\]{{4,400}}"),
    ),
    (re.compile(r"<\Z"), _any_case(rf"({_NAMES}>)(?!\[secret)[^<\s]{{1,400}}(?=</)")),
)
"""What has to stand before the name, and what begins with it."""
_BEFORE = 100
"""Characters before a name that are looked at."""


def without_named(text: str) -> str:
    """The text with each value behind a telling name replaced by ``[secret: password]``."""
    kept: list[str] = []
    done = 0
    for beginning in _BEGINNING.finditer(text):
        if beginning.start() < done:
            continue
        found = _secret_at(text, beginning.start())
        if found is not None:
            kept += [text[done : found.end(1)], "[secret: password]"]
            done = found.end()
    return "".join([*kept, text[done:]]) if kept else text


def _secret_at(text: str, at: int) -> re.Match[str] | None:
    for pattern in _ANYWHERE:
        if (found := pattern.match(text, at)) is not None:
            return found
    before = text[max(0, at - _BEFORE) : at]
    for condition, pattern in _BEHIND:
        if condition.search(before) and (found := pattern.match(text, at)) is not None:
            return found
    return None


def is_secret_field(name: str) -> bool:
    """Whether a field is named like a secret: ``apiKey``, ``db_password``, ``Set-Cookie``."""
    return _FIELD.search(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)) is not None
