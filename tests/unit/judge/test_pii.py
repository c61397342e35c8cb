"""Removal of personal data."""

from __future__ import annotations

import random
import uuid

import pytest

from pandaeval_collector.judge.pack import pack
from pandaeval_collector.judge.personal_data import PersonalData
from pandaeval_collector.judge.redact import redacted
from pandaeval_otel.model import Kind, Span
from support.judged import call, trace

_CHANCE = random.Random(20_260_102)
_NAMES = ("ann.lee", "o.brien+news", "maria_lopez", "j-müller2", "x")
_HOSTS = ("example.org", "mail.example.co.uk", "firma.de", "xn--bcher-kva.example")


def _digits(count: int) -> str:
    return "".join(str(_CHANCE.randrange(10)) for _ in range(count))


def _card() -> str:
    body = _CHANCE.choice(("4", "51", "37", "6011")) + _digits(14)
    body = body[: 14 if body.startswith("37") else 15]
    doubled = [int(digit) * (2 if index % 2 == 0 else 1) for index, digit in enumerate(reversed(body))]
    total = sum(value - 9 if value > 9 else value for value in doubled)
    number = body + str(-total % 10)
    parts = [number[at : at + 4] for at in range(0, len(number), 4)] if len(number) == 16 else [number]
    return _CHANCE.choice(("", " ", "-")).join(parts)


def _iban() -> str:
    country, length = _CHANCE.choice((("DE", 18), ("NL", 14), ("FR", 23), ("GB", 18)))
    account = _digits(length) if country in ("DE", "FR") else _CHANCE.choice(("ABNA", "NWBK")) + _digits(length - 4)
    check = 98 - int("".join(str(int(sign, 36)) for sign in f"{account}{country}00")) % 97
    number = f"{country}{check:02}{account}"
    return number if _CHANCE.random() < 0.5 else " ".join(number[at : at + 4] for at in range(0, len(number), 4))


KINDS = {
    "e-mail": lambda: f"{_CHANCE.choice(_NAMES)}@{_CHANCE.choice(_HOSTS)}",
    "phone": lambda: _CHANCE.choice(
        (
            f"+49 30 {_CHANCE.randrange(200000, 999999)}",
            f"+44 20 79{_digits(2)} {_digits(4)}",
            f"(415) 555-{_digits(4)}",
            f"212-555-{_digits(4)}",
            f"+1 415 555 {_digits(4)}",
            f"+4915112{_digits(6)}",
        )
    ),
    "card": _card,
    "iban": _iban,
}
TEXTS = ("write to {} please", '{{"contact": "{}"}}', "{}", "my data: {}, thanks", "is it {}?")
CORPUS = [(kind, make(), _CHANCE.choice(TEXTS)) for kind, make in KINDS.items() for _ in range(100)]
INNOCENT = (
    str(uuid.UUID(int=7)),
    "0af7651916cd43dd8448eb211c80319c",
    "b7ad6b7169203331",
    "call_9f8Gh2kLmNoPqRsTuVwXyZ01",
    "1700000000",
    "1700000000000000000",
    "4155552671",
    "2026-01-01T00:00:00Z",
    "2026-01-01",
    "24.12.2026",
    "10.0.0.1:8080",
    "version 1.106.2",
    "ORDER-2026-000123456789",
    "parcel 12345 weighs 1.250 kg",
    "https://shop.example/parcels/12345?page=2",
    "3.14159 2.71828",
    "from 10:30 to 11:45, 3 - 5 days",
    "@decorator and user at example dot org",
    "ISBN 978-3-16-148410-0",
)


@pytest.fixture(scope="module")
def hide() -> PersonalData:
    return PersonalData()


@pytest.mark.parametrize("kind", KINDS)
def test_all_listed_kinds_of_personal_data_are_removed(hide: PersonalData, kind: str) -> None:
    left = [value for each, value, text in CORPUS if each == kind and value in hide(text.format(value))]
    assert not left, (len(left), left[:5])


@pytest.mark.parametrize("text", INNOCENT)
def test_ids_times_and_amounts_stay_as_they_are(hide: PersonalData, text: str) -> None:
    assert hide(text) == text


def test_false_alarms_on_random_ids_are_rare(hide: PersonalData) -> None:
    ids = [f"{_CHANCE.getrandbits(64):016x}" for _ in range(2000)] + [_digits(length) for length in range(5, 25)] * 10
    alarms = [id_ for id_ in ids if hide(id_) != id_]
    # One in ten numbers of 13 to 19 digits has the check digit of a card number.
    assert len([id_ for id_ in alarms if not id_.isdigit()]) <= 2
    assert len(alarms) <= 20


def test_text_around_personal_data_stays(hide: PersonalData) -> None:
    assert hide("Ann (ann@example.org, +49 30 901820) paid.") == (
        "Ann ([personal: e-mail address], [personal: phone number]) paid."
    )
    assert hide("[personal: e-mail address]") == "[personal: e-mail address]"


def test_a_pack_contains_no_e_mail_address_of_the_trace(hide: PersonalData) -> None:
    secret = "ann@example.org"
    retrieval = Span("t", "s2", "", "search", Kind.RETRIEVAL, 1, 2, documents=(f"{secret} asked",))
    made = trace(
        f"I am {secret}",
        f"Dear {secret}",
        [call(1, arguments={"to": secret}, result={"nested": [secret]}, error=f"no {secret}")],
        reasoning=(f"{secret} is the user",),
        error=f"{secret} failed",
    )
    shown = redacted(type(made)(**{**_fields(made), "spans": (*made.spans, retrieval)}), hide)
    packed = pack(shown, b"s" * 32)
    assert secret not in packed.text
    assert packed.text.count("[personal: e-mail address]") >= 6


def _fields(made: object) -> dict[str, object]:
    return {name: getattr(made, name) for name in made.__dataclass_fields__}  # type: ignore[attr-defined]
