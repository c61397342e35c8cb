"""Secrets found by the name before them, such as ``password: x``, ``PGPASSWORD=x``, ``"apiKey": "x"`` or
``<secret>x</secret>``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_ENDING = re.compile(
    r"(?:pass(?:word|wd|phrase|code)?|pwd|secret(?:_key_base)?|credentials?|token|key|authorization)"
    r"(?:[_ ]?\d)?(?=[\\\"'\]\s:=>,])"
)
"""Endings of names of secrets in lower case, and possible characters after them: a quote, bracket, space or sign."""
_IN_NAMES = "abcdefghijklmnopqrstuvwxyz0123456789_.-"
_LONGEST_NAME = 60
_PLAIN = ("passw", "passphrase", "secret", "credential")
"""Endings that are enough with any prefix: ``PGPASSWORD``."""
_COOKIE = re.compile(r"(?:^|[_-])(?:set[_-]?)?cookies?$", re.IGNORECASE)
_NO_SECRET_TOKENS = re.compile(
    r"(?:next|page|paging|pagination|continuation|continue|sync|resume|cursor|eos|bos|pad|unk|mask|stop|special|first|"
    r"last|per|cancellation|change|sequence)[_.-]?\Z"
)
_SECRET_KEYS = re.compile(
    r"(?:api|access|secret|private|account|encryption|signing|master|subscription|auth|webhook|service|role|license|"
    r"hmac|jwt|deploy|admin|consumer|unseal)[ _.-]?\Z"
)
_NO_SECRET_KEYS = re.compile(
    r"(?:primary|foreign|sort|partition|cache|public|pub|unique|idempotency|group|row|hash|object|routing|dedup\w{0,20}|index|"
    r"composite|natural|surrogate|lookup|join|range|shard|message|event|issue|project|translation|i18n|config|field|dict|"
    r"map|item|record|entity|state|session|order|user|customer|tracking|parent|child|ticket|span|trace|run|job|task|"
    r"metric|series|label|feature|flag|file|path|blob|lock|queue|topic|registry|hot|arrow|tab|business|date|time|"
    r"sequence|next|last|first|start|end|min|max|current|correlation|request|response|tool|thread|conversation|memory|"
    r"column|table|filter|search|result|data|resource|node|edge|vertex|document|doc|chunk|page|cursor|version|commit|"
    r"build|artifact|product|sku|category|type|content|digest|etag|checksum|fingerprint|answer|mon|don|tur|whis|ho|jo|poc)"
    r"[_.-]?\Z"
)
_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_RANDOM = re.compile(
    rf"(?!{_UUID}\Z)(?=[A-Za-z+/=_-]{{0,60}}[0-9])(?=[0-9+/=_-]{{0,60}}[A-Za-z])"
    r"(?![A-Za-z0-9]{0,40}[-_][A-Za-z0-9]{0,40}[-_][A-Za-z0-9]{0,40}[-_])[A-Za-z0-9+/=_~-]{16,}"
)
"""A random value, not a UUID and not words joined by signs; for names that can be harmless."""

_VARIABLE = (
    r"\[secret|\$\{|\$\(|\$[A-Za-z_]{1,60}(?=[\"'\s;]|\Z)|\{\{|<[A-Za-z _-]{1,60}>|%[A-Za-z_]{1,60}%|%[sd](?!\w)|%\("
    r"|\*{3}|\.{3}|…|"
    r"(?:os|process|self|args|config|settings|env|request|response|data)\.[a-z_]|"
    r"(?:os_)?(?:get\w{0,20}|input|read\w{0,20}|load\w{0,20})[(\[]|"
    r"(?:none|null|nil|undefined|true|false)(?=[\s\"',;:)\]}]|\\|\Z)|"
    r"your[_-][A-Za-z_-]{1,60}(?=[\s\"',;)\]}]|\\|\Z)|\[[A-Za-z _-]{1,30}\](?!\w)"
)
"""A variable, a mask, a constant of a language or a placeholder."""
_CODE = r"(?:await|new|not)\s|(?:[A-Za-z_]{1,40}\.){0,4}[A-Za-z_]{2,40}\("
"""A call: ``tokenizer.decode(``."""
_PLACEHOLDER = re.compile(
    r"<[A-Za-z _-]{1,60}>|\$\{[^{}]{1,80}\}|\$[A-Za-z_]{1,60}|\{\{[^{}]{1,80}\}\}|%[A-Za-z_]{1,60}%|"
    r"\[[A-Za-z _-]{1,30}\]|(?:\*|x|\.){3,}|(?:YOUR|your)[ _-][A-Za-z _-]{1,60}|include|omit|same-origin"
)
"""A placeholder instead of a secret, or the value of ``credentials`` in ``fetch``."""
_NOTHING = (
    r"(?!\[secret|(?:null|none|nil|true|false|yes|no|on|off|ok|required|optional|missing|invalid|wrong|incorrect|valid|"
    r"correct|expired|empty|unset|unknown|changed|reset|string|str|text|password|secret|bytes|bool|int|float|any|object|"
    r"\*+|x{3,}|\.+|…|-+|\d{1,3})"
    r"(?:[\"'.,;!?)]|\s|\Z)|[$<{%(]|\[[A-Za-z _-]{1,30}\])"
)
"""A value that is not a word about the name, a mask or a variable."""
_END = r"(?=[ \t]{0,40}(?:#|\r|\n|\\[rn]|\Z))"
_QUOTE = r"\\{0,31}[\"']"
_TO = r"(?:[ \t]{1,4}|[\"'],?\s{0,4}(?=[\"']))"
_BARE = r"(?:[^\s\"',;&\])}\\]|\\(?![nrt\"'\\])|[,;&\])}](?![\s\"',;&\])}\\]|\Z|[\w.-]{1,40}[=:]|amp;))"
"""A character of a value without quotes. A sign inside the value belongs to it, although it ends other values."""


# What follows a name, up to its value, and the value. The first that fits counts.
_FOLLOWS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # "name": "value", environ["name"] = "value", {"name": "X_KEY", "value": "value"}
        rf"([\"']\]?\s{{0,40}}(?:[:=]>?)\s{{0,40}}[a-z]?\")(?!{_VARIABLE})(?:[^\"\\]|\\.)+",
        rf"([\"']\]?\s{{0,40}}(?:[:=]>?)\s{{0,40}}[a-z]?')(?!{_VARIABLE})(?:[^'\\]|\\.)+",
        rf"({_QUOTE}\]?\s{{0,40}}(?:[:=]>?)\s{{0,40}}{_QUOTE})(?!{_VARIABLE})(?:[^\"'\\]|\\[^\"'])+",
        rf"({_QUOTE}\]?\s{{0,40}}[:=]\s{{0,40}})\d{{4,}}",
        rf"((?:{_QUOTE})?,?(?:\s|\\n){{1,40}}(?:{_QUOTE})?value(?:{_QUOTE})?\s{{0,9}}[:=]\s{{0,9}}(?:{_QUOTE})?)"
        rf"(?!{_VARIABLE})[^\s\"'\\,}}]{{1,400}}",
        # ("name", "value")
        rf"({_QUOTE}\s{{0,4}},\s{{0,4}}{_QUOTE})(?=[^\s\"'\\]{{0,60}}[0-9])[^\s\"'\\]{{8,400}}(?={_QUOTE})",
        # name=value, name = 'value'
        rf"(\s{{0,40}}:?==?>?\s{{0,40}}[a-z]?\")(?!{_VARIABLE})(?:[^\"\\]|\\[^\"\\]){{4,}}",
        rf"(\s{{0,40}}:?==?>?\s{{0,40}}[a-z]?')(?!{_VARIABLE})(?:[^'\\]|\\[^'\\]){{4,}}",
        rf"(\s{{0,40}}:?==?>?\s{{0,40}}(?:{_QUOTE})?)(?!{_VARIABLE}|{_CODE})(?![\"'\\]){_BARE}{{4,}}",
        # name: 'value'
        rf"([ \t]{{0,4}}:[ \t]{{0,40}}{_QUOTE})(?!{_VARIABLE})[^\"'\\\r\n]{{1,400}}(?={_QUOTE})",
    )
)
_SAID = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"([ \t]{{0,4}}:[ \t]{{0,40}}){_NOTHING}[^\s\"'\\]{{1,400}}+{_END}",
        # Within a line: a value with a digit, or with a sign that words lack.
        rf"([ \t]{{0,4}}:[ \t]{{0,40}}(?:{_QUOTE})?){_NOTHING}"
        r"(?=[^\s\"'\\,;]{0,60}(?:[0-9!@#$%^&*+=~|?]|(?-i:[a-z][A-Z])))"
        r"(?!\d{1,3}(?![\dA-Za-z]))[^\s\"'\\,;]{4,400}",
    )
)
_LINE_BEGIN = re.compile(r"(?:\A|\n|\\n)[ \t>*-]{0,40}[A-Za-z0-9_.-]{0,40}\Z")
_BEHIND: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = (
    (
        re.compile(r"(?:\A|[\s\"'=])--?[A-Za-z-]{0,30}\Z"),
        re.compile(rf"({_TO}(?:{_QUOTE})?)(?!\[secret|-|\d{{1,5}}(?!\w))[^\s\"'\\]{{4,400}}", re.IGNORECASE),
    ),
    (re.compile(r"<[A-Za-z0-9_.:-]{0,40}\Z"), re.compile(r"(>)(?!\[secret)[^<\s]{1,400}(?=</)")),
    (
        re.compile(r"(?:\A|\s|\\n)(?:ENV|ARG|setenv|set(?: -[a-z]{1,3})?|export)[ \t]{1,4}[A-Za-z0-9_.]{0,60}\Z"),
        re.compile(rf"([ \t]{{1,4}}(?:{_QUOTE})?)(?!{_VARIABLE})(?=[^\s=]{{0,60}}[0-9])[^\s\"'\\=]{{6,400}}"),
    ),
)
"""Pairs of patterns: the text before a name's ending, and the text after it."""
_BEFORE = 100
"""Characters read before a name's ending."""


def without_named(text: str) -> str:
    """Replace each value after a secret's name by ``[secret: password]``."""
    kept: list[str] = []
    done = 0
    for name, start, end in _names(text):
        if start >= done and (held := _value_behind(text, name, start, end)) is not None:
            kept += [text[done : held.end(1)], "[secret: password]"]
            done = held.end()
    return "".join([*kept, text[done:]]) if kept else text


def _names(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the lower-case ending of each possible secret name, and its position.

    An ending with ``?`` names a secret only if its value looks like a secret.
    """
    lower = text.replace("\u0130", "i").lower()  # the only character whose lower case is longer
    for found in _ENDING.finditer(lower):
        start, ending = found.start(), found[0]
        before = lower[max(0, start - _LONGEST_NAME) : start]
        name = before[len(before.rstrip(_IN_NAMES)) :]
        outside = before[: len(before) - len(name)]
        if outside.endswith("\\") and not outside.endswith("\\\\") and name[:1] in ("n", "r", "t"):
            name = name[1:]
        is_apart = not name or name[-1] in "_.-" or text[start].isupper()
        if ending.startswith(("token", "key", "authorization")):
            if sure := _sureness(ending, name, outside, is_apart):
                yield ending + sure.strip("!"), start, found.end()
        elif (is_apart or ending.startswith(_PLAIN)) and not (
            not name and outside.endswith("[") and ending == "secret" and lower.startswith(":", found.end())
        ):
            yield ending, start, found.end()


def _sureness(ending: str, name: str, outside: str, is_apart: bool) -> str:
    if ending.startswith("authorization"):
        return "?"
    if ending.startswith("token"):
        return "" if _NO_SECRET_TOKENS.search(name) else "!"
    if _SECRET_KEYS.search(name or outside) and not name.startswith("public"):
        return "!"
    if not name:
        return "?" if outside.endswith(("?", "&")) else ""
    return "?" if is_apart and not _NO_SECRET_KEYS.search(name) else ""


def _value_behind(text: str, name: str, start: int, end: int) -> re.Match[str] | None:
    for pattern in _FOLLOWS:
        if (held := pattern.match(text, end)) is not None:
            return held if _may_hold(name, held) else None
    before = text[max(0, start - _BEFORE) : start]
    patterns = _SAID if not name.startswith(("token", "credential")) or _LINE_BEGIN.search(before) else _SAID[1:]
    for pattern in patterns:
        if (held := pattern.match(text, end)) is not None and _may_hold(name, held):
            return held
    for condition, pattern in _BEHIND:
        if condition.search(before) and (held := pattern.match(text, end)) is not None and _may_hold(name, held):
            return held
    return None


def _may_hold(name: str, held: re.Match[str]) -> bool:
    value = held[0][held.end(1) - held.start() :]
    if name == "pwd":
        return not value.startswith(("/", "~"))
    if _PLACEHOLDER.fullmatch(value) or _is_variable(name, held[1], value):
        return False
    return not name.endswith("?") or _RANDOM.fullmatch(value) is not None


def _is_variable(name: str, sign: str, value: str) -> bool:
    """Return whether an assigned value is a variable of the same kind: ``token = expected_token``."""
    if "=" not in sign or sign.endswith(("'", '"')):
        return False
    words = value.lower().rstrip(":").replace(".", "_")
    return f"_{words}".endswith(f"_{name.strip('?')}") and words.replace("_", "").isalpha()


def is_secret_name(name: str, value: str) -> bool:
    """Return whether a field is named like a secret: ``apiKey``, ``PGPASSWORD``, ``Set-Cookie``.

    Some names count only if ``value`` looks like a secret. Placeholders never count.
    """
    if _PLACEHOLDER.fullmatch(value):
        return False
    if _COOKIE.search(name):
        return True
    return any(
        end == len(name) and (not ending.endswith("?") or _RANDOM.fullmatch(value) is not None)
        for ending, _, end in _names(f"{name}:")
    )
