"""Secrets found in text by the shapes that providers give them, and by the names that stand beside them
(:mod:`pandaeval_collector.base.untrusted.named_secrets`).

Typed patterns only: entropy would take span ids, call ids and UUIDs for secrets, and a judge that cannot tell two call
ids apart is a worse judge. What is found is replaced by ``[secret: kind]``. Nothing here knows secrets without a shape
of their own, such as a password in the middle of a sentence that does not say "password:" before it.
"""

from __future__ import annotations

import base64
import re

from pandaeval_collector.base.untrusted.named_secrets import without_named
from pandaeval_collector.base.untrusted.printable import INVISIBLE

_BOUNDARY = r"(?<![A-Za-moqsu-z0-9_-])(?<!(?<!\\)[nrt])"
"""Before a token: nothing that could be a part of it, but for the written end of a line (``\\n``), as JSON has it."""

# Each with words, in lower case, without one of which it is not looked for: that saves most of the time.
# Quotes may be escaped any number of times: JSON lies in JSON.
_PATTERNS: tuple[tuple[str, tuple[str, ...], re.Pattern[str], str], ...] = tuple(
    (kind, words, re.compile(pattern, flags), put)
    for kind, words, pattern, flags, put in (
        (
            "private key",
            ("private key",),
            r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
            0,
            "",
        ),
        ("jwt", ("eyj",), _BOUNDARY + r"eyJ[A-Za-z0-9_-]{6,}\.eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}", 0, ""),
        (
            "aws key",
            (
                "akia",
                "asia",
                "abia",
                "acca",
                "aroa",
                "aida",
            ),
            _BOUNDARY + r"(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z0-9]{16}(?![A-Za-z0-9])",
            0,
            "",
        ),
        ("gcp key", ("aiza",), _BOUNDARY + r"AIza[A-Za-z0-9_-]{35}", 0, ""),
        ("gcp token", ("ya29.",), _BOUNDARY + r"ya29\.[A-Za-z0-9_-]{20,}", 0, ""),
        (
            "github token",
            ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
            _BOUNDARY + r"(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{22,255})",
            0,
            "",
        ),
        ("gitlab token", ("glpat-",), _BOUNDARY + r"glpat-[A-Za-z0-9_-]{20,}", 0, ""),
        ("slack token", ("xox",), _BOUNDARY + r"xox[abeoprs]-[A-Za-z0-9-]{10,}", 0, ""),
        ("slack webhook", ("hooks.slack.com",), r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,}", 0, ""),
        ("anthropic key", ("sk-ant-",), _BOUNDARY + r"sk-ant-[A-Za-z0-9_-]{20,}", 0, ""),
        ("openai key", ("sk-",), _BOUNDARY + r"sk-(?:proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_-]{20,}", 0, ""),
        (
            "stripe key",
            (
                "_live_",
                "_test_",
            ),
            _BOUNDARY + r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}",
            0,
            "",
        ),
        ("hugging face token", ("hf_",), _BOUNDARY + r"hf_[A-Za-z0-9]{30,}", 0, ""),
        ("npm token", ("npm_",), _BOUNDARY + r"npm_[A-Za-z0-9]{36}", 0, ""),
        ("pypi token", ("pypi-",), _BOUNDARY + r"pypi-[A-Za-z0-9_-]{40,}", 0, ""),
        ("sendgrid key", ("sg.",), _BOUNDARY + r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}", 0, ""),
        (
            "azure key",
            (
                "accountkey",
                "sharedaccess",
            ),
            r"((?:AccountKey|SharedAccessKey|SharedAccessSignature)\s*=\s*)[A-Za-z0-9+/%=]{20,}",
            0,
            r"\1",
        ),
        ("azure signature", ("sig=",), r"([?&]sig=)[A-Za-z0-9%+/=_-]{20,}", 0, r"\1"),
        (
            "authorization",
            ("authorization",),
            r"(\b(?:proxy-)?authorization\\*[\"']?\s*[:=]\s*\\*[\"']?(?:bearer|basic|token|digest)\s+)(?!\[secret)[^\s\"',;]{6,}",
            re.IGNORECASE,
            r"\1",
        ),
        (
            "bearer token",
            ("bearer",),
            r"(\bbearer\s+)(?=[A-Za-z0-9._~+/-]*[0-9])[A-Za-z0-9._~+/-]{16,}=*",
            re.IGNORECASE,
            r"\1",
        ),
        (
            "password",
            ("://",),
            r"(\b[a-z][a-z0-9+.-]{0,30}://[^\s:/@\"'<>]*:)[^\s/@\"'<>\[]+(?=@)",
            re.IGNORECASE,
            r"\1",
        ),
        # `neutral` writes links without their scheme.
        ("password", ("[link ",), r"(\[link [^\s:/@\"'<>]+:)[^\s/@\"'<>\[]+(?=@)", re.IGNORECASE, r"\1"),
        (
            "cookie",
            ("cookie",),
            r"(\b(?:set-)?cookie2?\\*[\"']?\s{0,4}[:=]\s{0,4}\[?\s{0,4}\\*[\"']?)(?=[^\s=;\"'\\]{1,100}=)[^\r\n\"'\\]+",
            re.IGNORECASE,
            r"\1",
        ),
        ("cookie", ("cookie",), r"(--cookie[ =]\\*[\"']?)[^\s\"'\\]+", re.IGNORECASE, r"\1"),
        (
            "session",
            (
                "sess",
                "connect.sid",
            ),
            r"(\b(?:JSESSIONID|PHPSESSID|ASPSESSIONID[A-Z]{0,16}|ASP\.NET_SessionId|connect\.sid|laravel_session|sessionid)"
            r"\s?=\s?)(?!\[secret)[^\s;,&\"'\\]{4,}",
            re.IGNORECASE,
            r"\1",
        ),
    )
)

_ENCODED = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}={0,2}(?![A-Za-z0-9+/_=-])")
_STANDARD = str.maketrans("-_", "+/")
_DEEPEST = 4
"""Layers of base64 that are looked through."""
_BASIC = re.compile(r"(\bbasic\s{1,4})([A-Za-z0-9+/_-]{8,400}={0,2})(?![A-Za-z0-9+/_=-])", re.IGNORECASE)
_USER_AND_PASSWORD = re.compile(r"[^:\s]{1,200}:.{1,200}")
_INVISIBLE = re.compile(f"[{INVISIBLE}\u2800\ufe00-\ufe0f]")


def redact(text: str) -> str:
    """The text with every secret that has a known shape replaced by its kind; characters that nobody sees, which could
    hide one, are taken out first."""
    return _deeply(_INVISIBLE.sub("", text), 0)


def _deeply(text: str, layer: int) -> str:
    lower = text.lower()
    for kind, words, pattern, put in _PATTERNS:
        if any(word in lower for word in words):
            text = pattern.sub(f"{put}[secret: {kind}]", text)
    if "basic" in lower:
        text = _BASIC.sub(_without_basic, text)
    text = without_named(text)
    return text if layer == _DEEPEST else _ENCODED.sub(lambda found: _without_encoded(found[0], layer), text)


def _without_encoded(token: str, layer: int) -> str:
    """What is base64 of a text with a secret in it, taken out whole; that text may hold base64 itself."""
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
