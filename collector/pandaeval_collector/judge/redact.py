"""Secrets taken out of all that a judge may be shown of a trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from pandaeval_collector.base.errors import UserError, installation
from pandaeval_collector.base.untrusted.secrets import is_secret_field, redact
from pandaeval_collector.judge.before import instructions_of, opening, with_hidden
from pandaeval_otel.model import Kind, Message, Reasoning, Span, Text, ToolCall, ToolRequest, Trace

__all__ = ["Hide", "redact", "redact_value", "redacted"]

Hide = Callable[[str], str]
"""Redacts a text."""


def redact_value(value: Any, hide: Hide = redact) -> Any:
    """Redacts the texts in a JSON value, and the values of fields with names of secrets."""
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
    return redact_value(_withheld(value) if is_secret_field(name) else value, hide)


def _withheld(value: Any) -> Any:
    """Redacts the value of a field that is named like a secret, except for small numbers, which count something."""
    match value:
        case str():
            return "[secret: password]" if value and not value.startswith("[secret") else value
        case int() if not isinstance(value, bool) and abs(value) >= _NUMERIC:
            return "[secret: password]"
        case list() | tuple():
            return [_withheld(each) for each in value]
        case _:
            return value


_NUMERIC = 1000
_REMEMBER = 256


def redacted(trace: Trace, hide: Hide = redact) -> Trace:
    """Returns the trace with ``hide`` applied to all that a judge may be shown of it, also beside its pack."""
    hide = lru_cache(_REMEMBER)(hide)  # what many model calls are told alike is looked through once
    some, first = _or_none(hide), opening(trace)
    return replace(
        trace,
        error=some(trace.error),
        input=some(trace.input),
        output=some(trace.output),
        turns=tuple(replace(turn, user=some(turn.user), assistant=some(turn.assistant)) for turn in trace.turns),
        tool_calls=tuple(_call(call, hide) for call in trace.tool_calls),
        tools=tuple(replace(tool, description=hide(tool.description)) for tool in trace.tools),
        reasoning=tuple(hide(text) for text in trace.reasoning),
        spans=tuple(_span(span, hide, span is first) for span in trace.spans),
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


def _span(span: Span, hide: Hide, is_first: bool) -> Span:
    """Redacts the shown parts of a span: instructions, retrieved documents, a model's thoughts and its words beside
    tool calls, and all input of the first model call."""
    if is_first:
        span = with_hidden(span, lambda value: redact_value(value, hide), hide)
    elif any(True for _ in instructions_of(span)):
        given = [_message(each, hide) if each.role == "system" else each for each in span.input or ()]
        system = _or_none(hide)(span.system)
        span = replace(span, system=system, input=None if span.input is None else tuple(given))
    asks = span.kind is Kind.LLM and any(
        isinstance(part, Reasoning | ToolRequest) for each in span.output or () for part in each.parts
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


# Personal data taken out of text before a model sees it: e-mail addresses, phone, card and account numbers.
#
# Presidio's pattern recognisers, called by themselves: its engine would fetch a language model. So nothing here knows
# people's names or addresses. Card numbers must have the right check digit, accounts (IBAN) the right checksum, phone
# numbers must be possible ones. Numbers without any sign between their digits are left alone: they are ids far more
# often than phone numbers, and a judge has to tell ids apart.
_SAID = {
    "EMAIL_ADDRESS": "e-mail address",
    "PHONE_NUMBER": "phone number",
    "CREDIT_CARD": "card number",
    "IBAN_CODE": "account number",
    "US_SSN": "social security number",
}
_SURE = 0.4
_MAYBE_PHONE = re.compile(r"(?<![\w.:/-])(?:\+|00|\()?\d[\d ().-]{5,18}\d(?![\w:/-])")
_SIGNS = re.compile(r"^\+|\d[ ().-]+\d")
_DATE = re.compile(r"\d{4}[.-]\d{1,2}[.-]\d{1,2}|\d{1,2}\.\d{1,2}\.\d{4}")


class NoPiiError(UserError):
    """Personal data is to be redacted, but the packages for that are not installed."""


@dataclass(frozen=True, slots=True)
class _Place:
    start: int
    end: int
    kind: str


def check_installed() -> None:
    """Raises :class:`NoPiiError` when the packages are missing, without importing them."""
    if find_spec("presidio_analyzer") is None:
        raise NoPiiError(
            f"redact.pii is set, and presidio-analyzer is not installed; install it with: {installation('pii')}"
        )


class PersonalData:
    """Removes personal data from texts. Creating one imports Presidio (seconds, 100 MB). One thread."""

    def __init__(self) -> None:
        from presidio_analyzer import predefined_recognizers as known

        class Mail(known.EmailRecognizer):
            def validate_result(self, pattern_text: str) -> bool:
                """Accepts any domain: the list of top-level domains would be downloaded."""
                return True

        self._everywhere: list[Any] = [
            Mail(),
            known.CreditCardRecognizer(),
            known.IbanRecognizer(),
            known.UsSsnRecognizer(),
        ]
        self._phones: Any = known.PhoneRecognizer()

    def __call__(self, text: str) -> str:
        """Returns the text with personal data replaced by ``[personal: kind]``."""
        cleaned, at = [], 0
        for place in sorted(self._places(text), key=lambda each: (each.start, -each.end)):
            if place.start >= at:
                cleaned += [text[at : place.start], f"[personal: {_SAID[place.kind]}]"]
                at = place.end
        return "".join([*cleaned, text[at:]])

    def _places(self, text: str) -> Iterator[_Place]:
        for recognizer in self._everywhere:
            yield from _found(recognizer, text, 0)
        for maybe in _MAYBE_PHONE.finditer(text):
            if _SIGNS.search(maybe[0]) and not _DATE.fullmatch(maybe[0]):
                yield from _found(self._phones, maybe[0], maybe.start())


def _found(recognizer: Any, text: str, offset: int) -> Iterator[_Place]:
    for each in recognizer.analyze(text, recognizer.supported_entities, None) or ():
        if each.score >= _SURE and each.entity_type in _SAID:
            yield _Place(offset + each.start, offset + each.end, each.entity_type)
