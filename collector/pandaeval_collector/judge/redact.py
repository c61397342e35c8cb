"""Secrets taken out of all that a judge may be shown of a trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from pandaeval_collector.base.errors import UserError, installation
from pandaeval_collector.base.untrusted.secrets import is_secret_field, redact
from pandaeval_collector.judge.before import instructions_of, opening, with_texts
from pandaeval_otel.model import Kind, Message, OtherPart, Part, Reasoning, Span, Text, ToolRequest, ToolResponse, Trace

__all__ = ["Hide", "redact", "redact_value", "redacted"]

Hide = Callable[[str], str]
"""Redacts a text."""


def redact_value(value: Any, hide: Hide = redact) -> Any:
    """Redacts the texts in a JSON value, and the values of fields with names of secrets."""
    match value:
        case str():
            return hide(value)
        case Mapping():
            named = value.get("name", value.get("key"))
            return {
                hide(str(key)): redact_value(
                    _withheld(each)
                    if is_secret_field(str(key), each)
                    or (key == "value" and isinstance(named, str) and is_secret_field(named, each))
                    else each,
                    hide,
                )
                for key, each in value.items()
            }
        case list() | tuple():
            return [redact_value(each, hide) for each in value]
        case _:
            return value


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
    hide, first = lru_cache(_REMEMBER)(hide), opening(trace)  # what many model calls are told alike is read once

    def some(text: str | None) -> str | None:
        return None if text is None else hide(text)

    def value(given: Any) -> Any:
        return redact_value(given, hide)

    return replace(
        trace,
        error=some(trace.error),
        input=some(trace.input),
        output=some(trace.output),
        turns=tuple(replace(turn, user=some(turn.user), assistant=some(turn.assistant)) for turn in trace.turns),
        tool_calls=tuple(
            replace(call, arguments=value(call.arguments), result=value(call.result), error=some(call.error))
            for call in trace.tool_calls
        ),
        tools=tuple(replace(tool, description=hide(tool.description)) for tool in trace.tools),
        reasoning=tuple(hide(text) for text in trace.reasoning),
        spans=tuple(_span(span, hide, span is first) for span in trace.spans),
    )


def _span(span: Span, hide: Hide, is_first: bool) -> Span:
    """Redacts the shown parts of a span: instructions, retrieved documents, a model's thoughts and its words beside
    tool calls, and all input of the first model call."""
    if is_first or any(True for _ in instructions_of(span)):
        messages = span.input and tuple(
            _whole(each, hide) if is_first else with_texts(each, hide) if each.role == "system" else each
            for each in span.input
        )
        span = replace(span, system=None if span.system is None else hide(span.system), input=messages)
    asks = span.kind is Kind.LLM and any(
        isinstance(part, Reasoning | ToolRequest) for each in span.output or () for part in each.parts
    )
    if not asks and not span.documents:
        return span
    return replace(
        span,
        documents=tuple(redact_value(each, hide) for each in span.documents),
        output=tuple(with_texts(each, hide) for each in span.output or ()) if asks else span.output,
    )


def _whole(message: Message, hide: Hide) -> Message:
    """Redacts all texts and values of a message that a judge may be shown of the time before a run."""

    def hidden(part: Part) -> Part:
        match part:
            case Text():
                return Text(hide(part.text))
            case ToolRequest():
                return replace(part, arguments=redact_value(part.arguments, hide))
            case ToolResponse():
                return replace(part, result=redact_value(part.result, hide))
            case OtherPart():
                return replace(part, value=redact_value(part.value, hide))
        return part

    return Message(message.role, tuple(map(hidden, message.parts)), message.finish_reason)


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


def check_installed() -> None:
    """Raises ``UserError`` when the packages are missing, without importing them."""
    if find_spec("presidio_analyzer") is None:
        raise UserError(
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
        places = [place for recognizer in self._everywhere for place in _places(recognizer, text, 0)]
        for maybe in _MAYBE_PHONE.finditer(text):
            if _SIGNS.search(maybe[0]) and not _DATE.fullmatch(maybe[0]):
                places += _places(self._phones, maybe[0], maybe.start())
        cleaned, at = [], 0
        for start, end, kind in sorted(places, key=lambda place: (place[0], -place[1])):
            if start >= at:
                cleaned += [text[at:start], f"[personal: {_SAID[kind]}]"]
                at = end
        return "".join([*cleaned, text[at:]])


def _places(recognizer: Any, text: str, offset: int) -> Iterator[tuple[int, int, str]]:
    """Yields start, end and kind of what a recogniser finds."""
    for each in recognizer.analyze(text, recognizer.supported_entities, None) or ():
        if each.score >= _SURE and each.entity_type in _SAID:
            yield offset + each.start, offset + each.end, each.entity_type
