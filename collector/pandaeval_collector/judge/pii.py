"""Personal data taken out of text before a model sees it: e-mail addresses, phone, card and account numbers.

Presidio's pattern recognisers, called by themselves: its engine would fetch a language model. So nothing here knows
people's names or addresses. Card numbers must have the right check digit, accounts (IBAN) the right checksum, phone
numbers must be possible ones. Numbers without any sign between their digits are left alone: they are ids far more often
than phone numbers, and a judge has to tell ids apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from pandaeval_collector.base.errors import UserError, installation

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
    """Personal data is to be taken out, and what that takes is not installed."""


@dataclass(frozen=True, slots=True)
class _Place:
    start: int
    end: int
    kind: str


def check_installed() -> None:
    """Raises :class:`NoPiiError` when the extra is missing, without importing what is heavy."""
    if find_spec("presidio_analyzer") is None:
        raise NoPiiError(
            f"redact.pii is set, and presidio-analyzer is not installed; install it with: {installation('pii')}"
        )


class PersonalData:
    """Takes personal data out of texts. Creating one imports Presidio (seconds, 100 MB). One thread."""

    def __init__(self) -> None:
        from presidio_analyzer import predefined_recognizers as known

        class Mail(known.EmailRecognizer):
            def validate_result(self, pattern_text: str) -> bool:
                """Without a look at the list of top-level domains, which would be fetched."""
                return True

        self._everywhere: list[Any] = [
            Mail(),
            known.CreditCardRecognizer(),
            known.IbanRecognizer(),
            known.UsSsnRecognizer(),
        ]
        self._phones: Any = known.PhoneRecognizer()

    def __call__(self, text: str) -> str:
        """The text with what was found replaced by ``[personal: kind]``."""
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
