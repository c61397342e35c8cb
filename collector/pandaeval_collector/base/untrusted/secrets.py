"""Secrets found in text by the shapes that providers give them, and by the names that stand beside them
(:mod:`pandaeval_collector.base.untrusted.secrets`).

Typed patterns only: entropy would take span ids, call ids and UUIDs for secrets, and a judge that cannot tell two call
ids apart is a worse judge. What is found is replaced by ``[secret: kind]``. Nothing here knows secrets without a shape
of their own, such as a password in the middle of a sentence that does not say "password:" before it.
"""

from __future__ import annotations

import base64
import re

from pandaeval_collector.base.untrusted.printable import UNSEEN

# Secrets without a shape of their own, known by the name that stands before them: ``password: x``, ``TOKEN=x``,
# ``"apiKey": "x"``, ``--password x``, ``<secret>x</secret>``; in YAML, JSON (also within JSON), environments and
# prose.
#
# What is said about such a name stays: that a password is wrong or required, how many tokens there were. Every
# pattern looks at a bounded stretch of text, or at one that it takes out: a text without end costs time in
# proportion to it.
_NAMES = (
    r"(?:pass(?:word|wd|phrase)?|pwd|secret(?:[_-]?(?:key|access[_-]?key))?|client[_-]?secret|api[_-]?key|apikey|"
    r"access[_-]?key|private[_-]?key|credentials?|aws[_-]?secret[_-]?access[_-]?key|account[_-]?key|"
    r"shared[_-]?access[_-]?key|(?:access|auth|bearer|refresh|session|id)[_-]?token|token)"
)
_SPOKEN = r"(?:pass(?:word|wd|phrase|code)|pwd|(?:client |shared )?secret(?:[ _-]key)?|api[ _-]?key|access[ _-]?key)"
"""The names as prose writes them."""
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
"""A value that is not a word about the name, a mask or a variable."""
_END = r"(?=[ \t]{0,40}(?:#|\r|\n|\\[rn]|\Z))"


def _any_case(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_NAMED = (
    rf"({_NAMES}\\*[\"']\s{{0,40}}:\s{{0,40}}\\*[\"'])(?!\[secret)(?:[^\"'\\]|\\[^\"'])+",
    rf"({_NAMES}\s{{0,40}}=\s{{0,40}}\\*[\"']?)(?!\[secret)(?![\"'\\])[^\s\"',;&\])}}]{{4,}}",
    rf"({_SPOKEN}[ \t]{{0,4}}:[ \t]{{0,40}}){_NOTHING}[^\s\"'\\]{{1,400}}{_END}",
    rf"({_NAMES}[ \t]{{0,4}}:[ \t]{{0,40}}\\*[\"'])(?!\[secret)[^\"'\\\r\n]{{1,400}}(?=\\*[\"'])",
    # In the middle of a line: what holds a digit or a sign that words do not have.
    rf"((?:{_SPOKEN}|{_NAMES})[ \t]{{0,4}}:[ \t]{{0,40}}\\*[\"']?)"
    rf"{_NOTHING}(?=[^\s\"'\\,;]{{0,60}}[0-9!@#$%^&*+=~|?])(?!\d{{1,3}}(?![\dA-Za-z]))[^\s\"'\\,;]{{4,400}}",
    rf"({_NAMES}\\*[\"']\s{{0,40}}:\s{{0,40}})\d{{4,}}",
)
_ANYWHERE = tuple(map(_any_case, _NAMED))
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
"""Pairs of patterns: what has to stand before a name, and what begins with it."""
_BEFORE = 100
"""How many characters before a name are looked at."""


def without_named(text: str) -> str:
    """Replaces each value behind a telling name by ``[secret: password]``."""
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
    """Returns whether a field is named like a secret: ``apiKey``, ``db_password``, ``Set-Cookie``."""
    return _FIELD.search(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)) is not None


_BOUNDARY = r"(?<![A-Za-moqsu-z0-9_-])(?<!(?<!\\)[nrt])"
"""Before a token: nothing that could be a part of it, but for the written end of a line (``\\n``), as JSON has it."""

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
        ("jwt", "eyj", _BOUNDARY + r"eyJ[A-Za-z0-9_-]{6,}\.eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}"),
        (
            "aws key",
            "akia|asia|abia|acca|aroa|aida",
            _BOUNDARY + r"(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z0-9]{16}(?![A-Za-z0-9])",
        ),
        ("gcp key", "aiza", _BOUNDARY + r"AIza[A-Za-z0-9_-]{35}"),
        ("gcp token", "ya29.", _BOUNDARY + r"ya29\.[A-Za-z0-9_-]{20,}"),
        (
            "github token",
            "ghp_|gho_|ghu_|ghs_|ghr_|github_pat_",
            _BOUNDARY + r"(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{22,255})",
        ),
        ("gitlab token", "glpat-", _BOUNDARY + r"glpat-[A-Za-z0-9_-]{20,}"),
        ("slack token", "xox", _BOUNDARY + r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
        ("slack webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,}"),
        ("anthropic key", "sk-ant-", _BOUNDARY + r"sk-ant-[A-Za-z0-9_-]{20,}"),
        ("openai key", "sk-", _BOUNDARY + r"sk-(?:proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_-]{20,}"),
        ("stripe key", "_live_|_test_", _BOUNDARY + r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}"),
        ("hugging face token", "hf_", _BOUNDARY + r"hf_[A-Za-z0-9]{30,}"),
        ("npm token", "npm_", _BOUNDARY + r"npm_[A-Za-z0-9]{36}"),
        ("pypi token", "pypi-", _BOUNDARY + r"pypi-[A-Za-z0-9_-]{40,}"),
        ("sendgrid key", "sg.", _BOUNDARY + r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
        (
            "azure key",
            "accountkey|sharedaccess",
            r"((?:AccountKey|SharedAccessKey|SharedAccessSignature)\s*=\s*)[A-Za-z0-9+/%=]{20,}",
        ),
        ("azure signature", "sig=", r"([?&]sig=)[A-Za-z0-9%+/=_-]{20,}"),
        (
            "authorization",
            "authorization",
            r"(?i)(\b(?:proxy-)?authorization\\*[\"']?\s*[:=]\s*\\*[\"']?(?:bearer|basic|token|digest)\s+)"
            r"(?!\[secret)[^\s\"',;]{6,}",
        ),
        ("bearer token", "bearer", r"(?i)(\bbearer\s+)(?=[A-Za-z0-9._~+/-]*[0-9])[A-Za-z0-9._~+/-]{16,}=*"),
        ("password", "://", r"(?i)(\b[a-z][a-z0-9+.-]{0,30}://[^\s:/@\"'<>]*:)[^\s/@\"'<>\[]+(?=@)"),
        # `neutral` writes links without their scheme.
        ("password", "[link ", r"(?i)(\[link [^\s:/@\"'<>]+:)[^\s/@\"'<>\[]+(?=@)"),
        (
            "cookie",
            "cookie",
            r"(?i)(\b(?:set-)?cookie2?\\*[\"']?\s{0,4}[:=]\s{0,4}\[?\s{0,4}\\*[\"']?)"
            r"(?=[^\s=;\"'\\]{1,100}=)[^\r\n\"'\\]+",
        ),
        ("cookie", "cookie", r"(?i)(--cookie[ =]\\*[\"']?)[^\s\"'\\]+"),
        (
            "session",
            "sess|connect.sid",
            r"(?i)(\b(?:JSESSIONID|PHPSESSID|ASPSESSIONID[A-Z]{0,16}|ASP\.NET_SessionId|connect\.sid|laravel_session|"
            r"sessionid)\s?=\s?)(?!\[secret)[^\s;,&\"'\\]{4,}",
        ),
    )
)

_ENCODED = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}={0,2}(?![A-Za-z0-9+/_=-])")
_STANDARD = str.maketrans("-_", "+/")
_DEEPEST = 4
"""Most layers of base64 that are decoded."""
_BASIC = re.compile(r"(\bbasic\s{1,4})([A-Za-z0-9+/_-]{8,400}={0,2})(?![A-Za-z0-9+/_=-])", re.IGNORECASE)
_USER_AND_PASSWORD = re.compile(r"[^:\s]{1,200}:.{1,200}")


def redact(text: str) -> str:
    """Replaces every secret that has a known shape by its kind; takes characters that nobody sees, which could hide
    one, out first."""
    return _deeply(UNSEEN.sub("", text), 0)


def _deeply(text: str, layer: int) -> str:
    lower = text.lower()
    for kind, words, pattern in _PATTERNS:
        if any(word in lower for word in words):
            text = pattern.sub(rf"\1[secret: {kind}]" if pattern.groups else f"[secret: {kind}]", text)
    if "basic" in lower:
        text = _BASIC.sub(_without_basic, text)
    text = without_named(text)
    return text if layer == _DEEPEST else _ENCODED.sub(lambda found: _without_encoded(found[0], layer), text)


def _without_encoded(token: str, layer: int) -> str:
    """Replaces base64 of a text with a secret in it as a whole; that text may hold base64 itself."""
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
