"""Secrets taken out of text before a model sees it, by the shapes that providers give them.

Typed patterns only: entropy would take span ids, call ids and UUIDs for secrets, and a judge that cannot tell two call
ids apart is a worse judge. What is found is replaced by ``[secret: kind]``. Nothing here knows secrets without a shape
of their own, such as a password in the middle of a sentence.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pandaeval_collector.judge.neutral import visible
from pandaeval_otel.model import Kind, Message, Reasoning, Span, Text, ToolCall, ToolRequest, Trace

Hide = Callable[[str], str]
"""A text without what is not to be seen."""

_NAMES = (
    r"(?:pass(?:word|wd|phrase)?|pwd|secret(?:[_-]?(?:key|access[_-]?key))?|client[_-]?secret|api[_-]?key|apikey|"
    r"access[_-]?key|private[_-]?key|(?:access|auth|bearer|refresh|session|id)[_-]?token|credentials?|"
    r"aws[_-]?secret[_-]?access[_-]?key|account[_-]?key|shared[_-]?access[_-]?key|token)"
)
_FIELD = re.compile(rf"(?:^|[_-]){_NAMES}$", re.IGNORECASE)
_BOUNDARY = r"(?<![A-Za-z0-9_-])"

# Quotes may be escaped any number of times: JSON lies in JSON.
_PATTERNS: tuple[tuple[str, re.Pattern[str], str], ...] = tuple(
    (kind, re.compile(pattern, flags), put)
    for kind, pattern, flags, put in (
        (
            "private key",
            r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
            0,
            "",
        ),
        ("jwt", _BOUNDARY + r"eyJ[A-Za-z0-9_-]{6,}\.eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}", 0, ""),
        ("aws key", _BOUNDARY + r"(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z0-9]{16}(?![A-Za-z0-9])", 0, ""),
        ("gcp key", _BOUNDARY + r"AIza[A-Za-z0-9_-]{35}", 0, ""),
        ("gcp token", _BOUNDARY + r"ya29\.[A-Za-z0-9_-]{20,}", 0, ""),
        ("github token", _BOUNDARY + r"(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{22,255})", 0, ""),
        ("gitlab token", _BOUNDARY + r"glpat-[A-Za-z0-9_-]{20,}", 0, ""),
        ("slack token", _BOUNDARY + r"xox[abeoprs]-[A-Za-z0-9-]{10,}", 0, ""),
        ("slack webhook", r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,}", 0, ""),
        ("anthropic key", _BOUNDARY + r"sk-ant-[A-Za-z0-9_-]{20,}", 0, ""),
        ("openai key", _BOUNDARY + r"sk-(?:proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_-]{20,}", 0, ""),
        ("stripe key", _BOUNDARY + r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}", 0, ""),
        ("hugging face token", _BOUNDARY + r"hf_[A-Za-z0-9]{30,}", 0, ""),
        ("npm token", _BOUNDARY + r"npm_[A-Za-z0-9]{36}", 0, ""),
        ("pypi token", _BOUNDARY + r"pypi-[A-Za-z0-9_-]{40,}", 0, ""),
        ("sendgrid key", _BOUNDARY + r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}", 0, ""),
        ("azure key", r"((?:AccountKey|SharedAccessKey|SharedAccessSignature)\s*=\s*)[A-Za-z0-9+/%=]{20,}", 0, r"\1"),
        ("azure signature", r"([?&]sig=)[A-Za-z0-9%+/=_-]{20,}", 0, r"\1"),
        (
            "authorization",
            r"(\b(?:proxy-)?authorization\\*[\"']?\s*[:=]\s*\\*[\"']?(?:bearer|basic|token|digest)\s+)(?!\[secret)[^\s\"',;]{6,}",
            re.IGNORECASE,
            r"\1",
        ),
        ("bearer token", r"(\bbearer\s+)(?=[A-Za-z0-9._~+/-]*[0-9])[A-Za-z0-9._~+/-]{16,}=*", re.IGNORECASE, r"\1"),
        ("password", r"(\b[a-z][a-z0-9+.-]{0,30}://[^\s:/@\"'<>]*:)[^\s/@\"'<>\[]+(?=@)", re.IGNORECASE, r"\1"),
        # `neutral` writes links without their scheme.
        ("password", r"(\[link [^\s:/@\"'<>]+:)[^\s/@\"'<>\[]+(?=@)", re.IGNORECASE, r"\1"),
        (
            "password",
            rf"(?<![A-Za-z0-9])({_NAMES}\\*[\"']\s*:\s*\\*[\"'])(?!\[secret)(?:[^\"'\\]|\\[^\"'])+",
            re.IGNORECASE,
            r"\1",
        ),
        (
            "password",
            rf"(?<![A-Za-z0-9])({_NAMES}\s*=\s*\\*[\"']?)(?!\[secret)(?![\"'\\])[^\s\"',;&\])}}]{{4,}}",
            re.IGNORECASE,
            r"\1",
        ),
    )
)

_ENCODED = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{20,}={0,2}(?![A-Za-z0-9+/_=-])")
_STANDARD = str.maketrans("-_", "+/")


def redact(text: str) -> str:
    """The text with every secret that has a known shape replaced by its kind; characters that nobody sees, which could
    hide one, are taken out first."""
    return _ENCODED.sub(_without_encoded, _plainly(visible(text)))


def _plainly(text: str) -> str:
    for kind, pattern, put in _PATTERNS:
        text = pattern.sub(f"{put}[secret: {kind}]", text)
    return text


def _without_encoded(found: re.Match[str]) -> str:
    """What is base64 of a text with a secret in it, taken out whole."""
    token = found[0].rstrip("=").translate(_STANDARD)
    try:
        decoded = base64.b64decode(token + "=" * (-len(token) % 4)).decode()
    except ValueError:
        return found[0]
    return found[0] if _plainly(decoded) == decoded else "[secret: encoded]"


def redact_value(value: Any, hide: Hide = redact) -> Any:
    """A JSON value with its texts redacted, and whatever stands in a field that is named like a secret."""
    match value:
        case str():
            return hide(value)
        case Mapping():
            return {hide(str(key)): _field(str(key), each, hide) for key, each in value.items()}
        case list() | tuple():
            return [redact_value(each, hide) for each in value]
        case _:
            return value


def _field(name: str, value: Any, hide: Hide) -> Any:
    if isinstance(value, str) and value and _FIELD.search(_snake(name)) and not value.startswith("[secret"):
        return "[secret: password]"
    return redact_value(value, hide)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)


def redacted(trace: Trace, hide: Hide = redact) -> Trace:
    """The trace with ``hide`` applied to all that a judge may be shown of it, also beside its pack."""
    some = _or_none(hide)
    return replace(
        trace,
        error=some(trace.error),
        input=some(trace.input),
        output=some(trace.output),
        turns=tuple(replace(turn, user=some(turn.user), assistant=some(turn.assistant)) for turn in trace.turns),
        tool_calls=tuple(_call(call, hide) for call in trace.tool_calls),
        tools=tuple(replace(tool, description=hide(tool.description)) for tool in trace.tools),
        reasoning=tuple(hide(text) for text in trace.reasoning),
        spans=tuple(_span(span, hide) for span in trace.spans),
    )


def _or_none(hide: Hide) -> Callable[[str | None], str | None]:
    return lambda text: None if text is None else hide(text)


def _call(call: ToolCall, hide: Hide) -> ToolCall:
    return replace(
        call,
        arguments=redact_value(call.arguments, hide),
        result=redact_value(call.result, hide),
        error=_or_none(hide)(call.error),
    )


def _span(span: Span, hide: Hide) -> Span:
    """What of a span is shown: the documents that were found, and what a model said when it asked for tools."""
    asks = span.kind is Kind.LLM and any(
        isinstance(part, ToolRequest) for each in span.output or () for part in each.parts
    )
    if not asks and not span.documents:
        return span
    return replace(
        span,
        documents=tuple(redact_value(each, hide) for each in span.documents),
        output=tuple(_message(each, hide) for each in span.output or ()) if asks else span.output,
    )


def _message(message: Message, hide: Hide) -> Message:
    parts = [
        replace(part, text=hide(part.text)) if isinstance(part, Reasoning | Text) else part for part in message.parts
    ]
    return replace(message, parts=tuple(parts))
