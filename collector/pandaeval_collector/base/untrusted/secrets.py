"""Finds secrets by provider formats and names, and replaces them with ``[secret: kind]``."""

from __future__ import annotations

import base64
import re

from pandaeval_collector.base.untrusted.key_kinds import ESCAPES, KEYS, STRETCHES, kind_of
from pandaeval_collector.base.untrusted.named_secrets import is_secret_name, without_named
from pandaeval_collector.base.untrusted.printable import UNSEEN

# Each pattern has words in lower case; it is only searched for in a text with one of them, which saves most time. What
# its group holds stays. Quotes may be escaped any number of times: JSON lies in JSON.
_PATTERNS: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (kind, tuple(words.split("|")), re.compile(pattern))
    for kind, words, pattern in (
        (
            "private key",
            "private key",
            r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
        ),
        (
            "private key",
            "private-lines",
            r"(Private-Lines: \d{1,4}(?:\s|\\[nr]){1,4})(?:[A-Za-z0-9+/=]{8,}(?:\s|\\[nr]){0,4})+",
        ),
        ("private key", "kty", r"(\b(?:d|k)\\{0,31}[\"']\s{0,4}:\s{0,4}\\{0,31}[\"'])[\w-]{40,}"),
        (
            "webhook",
            "/webhook|hooks.slack.com",
            r"(discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\d{10,22}/|webhook\.office\.com/webhookb2/|"
            r"hooks\.slack\.com/(?:services|workflows|triggers)/)[\w@/-]{20,}",
        ),
        (
            "signature",
            "sig=|signature=",
            r"(?i)((?:[?&;]|amp;|x-(?:amz|goog)-|\b)sig(?:nature)?=)[A-Za-z0-9%+/=_~-]{20,}",
        ),
        (
            "authorization",
            "authorization",
            r"(?i)(\b(?:proxy-)?authorization\\{0,31}[\"']?\s*[:=]\s*\\{0,31}[\"']?(?:bearer|basic|token|digest)\s+)"
            r"(?!\[secret|[<$]|your[_-])[^\s\"',;]{6,}",
        ),
        (
            "authorization",
            "authorization",
            r"(?i)(\bauthorization\\{0,31}[\"']?\s{0,4}[:=]\s{0,4}\\{0,31}[\"']?[a-z][a-z0-9-]{1,20}\s{1,4})"
            r"(?!\[secret)(?=[^\s\"',;]{0,60}[0-9])[^\s\"',;]{16,}",
        ),
        ("bearer token", "bearer", r"(?i)(\bbearer\s+)(?=[A-Za-z0-9._~+/-]*[0-9])[A-Za-z0-9._~+/-]{16,}=*"),
        ("sidekiq key", "contribsys", r"(://)[0-9a-f]{8}:[0-9a-f]{8}(?=@[a-z.]{1,20}contribsys\.com)"),
        (
            "password",
            ":/|:\\/",
            r"(:\\?/\\?/[^\s:/@\"'<>]{0,200}:)(?!\[secret)"
            r"(?:[^\s/\"'<>\[]{1,400}(?=@)|(?!\d{1,5}[/?#])[^\s@\"'<>\[]{1,400}(?=@))",
        ),
        # `neutral` writes links without their scheme.
        ("password", "[link ", r"(?i)(\[link [^\s:/@\"'<>]+:)[^\s/@\"'<>\[]+(?=@)"),
        ("password", ":thin:", r"(:thin:\w{1,60}/)(?!\[secret)[^\s/@\"'\\]{1,100}(?=@)"),
        # Commands and the files that they read.
        (
            "password",
            "-u|user",
            r"((?:[\s\"'])(?:-u|-U|--user|--proxy-user|--basic)[\s\"',=\\]{1,6}[^\s:\"'\\$/]{1,100}:)"
            r"(?!\[secret|[$/~]|\d{1,6}(?!\w))[^\s\"'\\]{2,200}",
        ),
        (
            "password",
            " -p| -a",
            r"(\b(?:mysql(?:dump|admin|import)?|mariadb|sshpass|redis-cli|docker login|mongo(?:sh|dump)?)"
            r"(?: [^\s|&;]{1,80}){0,12}? -[pa] ?[\"']?)(?![\"'\s-]|\[secret|\$|\d{1,5}(?!\S))[^\s\"'\\]{4,200}",
        ),
        (
            "password",
            "machine|default",
            r"(\b(?:machine(?:\s|\\n){1,9}[^\s\\]{1,200}|default)(?:\s|\\n){1,9}login(?:\s|\\n){1,9}[^\s\\]{1,200}(?:\s|\\n){1,9}password(?:\s|\\n){1,9})(?!\[secret)[^\s\\]{1,200}",
        ),
        (
            "password",
            ":5432:|:5433:|:6432:|:*:",
            r"([\w.*-]{1,200}:(?:5432|5433|6432|\*):[^\s:\"'\\]{1,60}:[^\s:\"'\\]{1,60}:)(?!\[secret)[^\s\"'\\]{3,200}",
        ),
        (
            "password",
            "identified",
            r"(?i)(\bidentified\s{1,9}(?:with\s{1,9}\w{1,40}\s{1,9})?by\s{1,9}\\{0,31}[\"'])(?!\[secret)[^\"'\\]{1,200}",
        ),
        (
            "cookie",
            "cookie",
            r"(?i)(\b(?:set-)?cookie2?\\{0,31}[\"']?\s{0,4}[:=]\s{0,4}\[?\s{0,4}\\{0,31}[\"']?)"
            r"(?=[^\s=;\"'\\]{1,100}=)[^\r\n\"'\\]+",
        ),
        ("cookie", "cookie", r"(?i)(--cookie[ =]\\{0,31}[\"']?)[^\s\"'\\]+"),
        ("cookie", " -b", r"(\bcurl\b[^\n|;&]{0,200}? -b[ =]?[\"']?)(?=[\w.-]{1,100}=)[^\s\"'\\]+"),
        (
            "facebook token",
            "|",
            r"(?<![\w-])\d{15,16}\|(?=[\w-]{0,39}[A-Z])(?=[\w-]{0,39}[a-z])(?=[\w-]{0,39}[0-9])[\w-]{27,40}(?![\w-])",
        ),
        ("x token", "a" * 20, r"(?<![\w+/=-])A{20,26}(?!A)[A-Za-z0-9%]{40,}"),
        (
            "session",
            "sess|connect.sid",
            r"(?i)(\b(?:JSESSIONID|PHPSESSID|ASPSESSIONID[A-Z]{0,16}|ASP\.NET_SessionId|connect\.sid|laravel_session|_gitlab_session|"
            r"sessionid)\s?=\s?)(?!\[secret)[^\s;,&\"'\\]{4,}",
        ),
    )
)

_ENCODED = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}={0,2}(?![A-Za-z0-9+/_=-])")
_STANDARD = str.maketrans("-_", "+/")
_DEEPEST = 4
"""Maximum decoded layers of base64."""
_BASIC = re.compile(
    r"(\bbasic\s{1,4}|(?<![A-Za-z])auth\\{0,31}[\"']?\s{0,4}[:=]\s{0,4}\\{0,31}[\"']?)"
    r"([A-Za-z0-9+/_-]{8,400}={0,2})(?![A-Za-z0-9+/_=-])",
    re.IGNORECASE,
)
_USER_AND_PASSWORD = re.compile(r"[^:\s]{1,200}:.{1,200}")


def is_secret_field(name: str, value: object) -> bool:
    """Return whether a field holds a secret, by its name, and by its value if the name is ambiguous."""
    text = value if isinstance(value, str) else ""
    if name.lower() in ("auth", "_auth"):
        return redact(f"auth: {text}") != f"auth: {text}"
    return is_secret_name(name, text)


def redact(text: str) -> str:
    """Replace every secret of a known shape by its kind. First removes invisible characters."""
    return _deeply(UNSEEN.sub("", text), 0)


def _deeply(text: str, layer: int) -> str:
    text = STRETCHES.sub(_without_keys, text)
    lower = text.lower()
    for kind, words, pattern in _PATTERNS:
        if any(word in lower for word in words):
            text = pattern.sub(rf"\1[secret: {kind}]" if pattern.groups else f"[secret: {kind}]", text)
    if "basic" in lower or "auth" in lower:
        text = _BASIC.sub(_without_basic, text)
    text = without_named(text)
    return text if layer == _DEEPEST else _ENCODED.sub(lambda found: _without_encoded(found[0], layer), text)


def _without_keys(stretch: re.Match[str]) -> str:
    text = stretch[0]
    escape = ESCAPES.match(stretch.string, stretch.start())
    begin = escape.end() - stretch.start() if escape else 0
    return text[:begin] + KEYS.sub(lambda key: f"[secret: {kind_of(key[0])}]", text[begin:])


def _without_encoded(token: str, layer: int) -> str:
    decoded = _decoded(token)
    return token if decoded is None or _deeply(decoded, layer + 1) == decoded else "[secret: encoded]"


def _without_basic(found: re.Match[str]) -> str:
    decoded = _decoded(found[2])
    known = decoded is not None and decoded.isprintable() and _USER_AND_PASSWORD.fullmatch(decoded)
    return f"{found[1]}[secret: authorization]" if known else found[0]


def _decoded(token: str) -> str | None:
    bare = token.rstrip("=").translate(_STANDARD)
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4)).decode()
    except ValueError:
        return None
