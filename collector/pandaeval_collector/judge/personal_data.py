"""Redacts e-mail addresses, and phone, card, account and social security numbers, by Presidio's pattern recognisers.

People's names, postal addresses, and phone numbers without separators or ``+`` remain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
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


def check_installed() -> None:
    """Raise ``UserError`` if packages are missing, without importing them."""
    if find_spec("presidio_analyzer") is None:
        raise UserError(
            f"redact.pii is set, and presidio-analyzer is not installed; install it with: {installation('pii')}"
        )


class PersonalData:
    """Removes personal data. Creation imports Presidio (seconds, 100 MB). One thread."""

    def __init__(self) -> None:
        from presidio_analyzer import predefined_recognizers as known

        class Mail(known.EmailRecognizer):
            def validate_result(self, pattern_text: str) -> bool:
                """Accept any domain, to avoid a download."""
                return True

        self._everywhere: list[Any] = [
            Mail(),
            known.CreditCardRecognizer(),
            known.IbanRecognizer(),
            known.UsSsnRecognizer(),
        ]
        self._phones: Any = known.PhoneRecognizer()

    def __call__(self, text: str) -> str:
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
    for each in recognizer.analyze(text, recognizer.supported_entities, None) or ():
        if each.score >= _SURE and each.entity_type in _SAID:
            yield offset + each.start, offset + each.end, each.entity_type
