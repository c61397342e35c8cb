"""Removal of secrets, against lookalikes."""

from __future__ import annotations

import base64
import json
import random
import string
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.base.untrusted.key_kinds import KINDS as KEY_KINDS
from pandaeval_collector.judge.pack import pack
from pandaeval_collector.judge.prompt import messages
from pandaeval_collector.judge.redact import redact, redact_value, redacted
from pandaeval_collector.scoring.metrics.trace.confidence import METRIC as CONFIDENCE
from pandaeval_otel.model import Kind, Span
from support import secret_shapes
from support.judged import call, trace

RUBRIC = CONFIDENCE.rubrics[-1]

_CHANCE = random.Random(20_260_101)
_ALNUM = string.ascii_letters + string.digits
_URLSAFE = _ALNUM + "-_"


def _some(alphabet: str, count: int) -> str:
    return "".join(_CHANCE.choice(alphabet) for _ in range(count))


def _b64(count: int) -> str:
    return base64.b64encode(_CHANCE.randbytes(count)).decode()


def _jwt() -> str:
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    body = base64.urlsafe_b64encode(json.dumps({"sub": _some(_ALNUM, 8)}).encode()).decode().rstrip("=")
    return f"{head}.{body}.{_some(_URLSAFE, 43)}"


def _pem() -> str:
    lines = "\n".join(_some(_ALNUM + "+/", 64) for _ in range(12))
    return f"-----BEGIN RSA PRIVATE KEY-----\n{lines}\n-----END RSA PRIVATE KEY-----"


# generator of a secret, and texts that contain it ({} is the secret)
KINDS: dict[str, tuple[Callable[[], str], tuple[str, ...]]] = {
    "aws id": (lambda: "AKIA" + _some(string.ascii_uppercase + "234567", 16), ("key {} here", "id={}")),
    "aws secret": (lambda: _some(_ALNUM + "/+", 40), ("aws_secret_access_key = {}", 'AWS_SECRET_ACCESS_KEY="{}"')),
    "gcp": (lambda: "AIza" + _some(_URLSAFE, 35), ("?key={}", "use {} for maps")),
    "azure": (lambda: _b64(64), ("DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};EndpointSuffix=x",)),
    "azure sas": (lambda: _some(_ALNUM, 43), ("https://a.blob.core.windows.net/c?sv=2022&sig={}&se=1",)),
    "github": (lambda: "ghp_" + _some(_ALNUM, 36), ("git clone https://{}@github.com/a/b", "token {}")),
    "github fine": (lambda: "github_pat_" + _some(_ALNUM, 22) + "_" + _some(_ALNUM, 59), ("{}", "use {}.")),
    "slack": (lambda: f"xoxb-{_some(string.digits, 12)}-{_some(_ALNUM, 24)}", ("bot {} posts",)),
    "openai": (lambda: "sk-proj-" + _some(_URLSAFE, 48), ("OPENAI_API_KEY={}", "my key is {}, keep it")),
    "openai old": (lambda: "sk-" + _some(_ALNUM, 48), ("{}", "'{}'")),
    "anthropic": (lambda: "sk-ant-api03-" + _some(_URLSAFE, 90), ("x-api-key: {}", "{}")),
    "jwt": (_jwt, ("Authorization: Bearer {}", "session {} expired")),
    "private key": (_pem, ("cat id_rsa\n{}\n$", "{}")),
    "bearer": (lambda: _some(_ALNUM, 39) + "7", ("curl -H 'Authorization: Bearer {}' x", "bearer {}")),
    "basic": (lambda: _b64(18), ("Authorization: Basic {}", '"authorization": "Basic {}"')),
    "json": (
        lambda: _some(_ALNUM + "!#%", 14),
        ('{{"user": "a", "password": "{}"}}', '{{"client_secret":"{}","x":1}}'),
    ),
    "connection": (lambda: _some(_ALNUM, 16), ("postgres://app:{}@db:5432/x", "redis://:{}@cache/0", "amqp://u:{}@q/")),
    "env": (lambda: _some(_ALNUM, 20), ("DB_PASSWORD={}", "export API_KEY={}", "secret_key = '{}'")),
    "stripe": (lambda: "sk_live_" + _some(_ALNUM, 24), ("charge with {}",)),
    "hf": (lambda: "hf_" + _some(_ALNUM, 34), ("login --token {}",)),
}
CORPUS = [
    (kind, secret, text.format(secret))
    for kind, (make, texts) in KINDS.items()
    for number in range(50)
    for secret, text in [(make(), texts[number % len(texts)])]
]
INNOCENT = (
    str(uuid.UUID(int=7)),
    "0af7651916cd43dd8448eb211c80319c",
    "b7ad6b7169203331",
    "call_9f8Gh2kLmNoPqRsTuVwXyZ01",
    "toolu_01A09q90qw90lq917835lq9",
    "chatcmpl-AbCdEfGhIjKlMnOpQrStUvWxYz012",
    "resp_68a1b2c3d4e5f60718293a4b5c6d7e8f",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "ORDER-2026-000123456789",
    "https://shop.example/parcels/12345?page=2&sort=asc",
    "the password was wrong, ask for a new one",
    "I sk-ipped the task-list and risk-assessment-of-the-whole-project",
    "bearer of bad news and the token economy",
    '{"tokens": 128, "max_tokens": 512, "id": "call_1"}',
    "the password is wrong",
    "Password: must be at least 8 characters",
    "password: required",
    "password: ${DB_PASSWORD}",
    "forgot password? reset it",
    "passwordless: true",
    "token count: 12",
    "token: 12",
    "token usage: 1200 of 8000",
    "tokens: 128",
    "id_token: null",
    "access token: expired",
    "credentials: missing",
    "the secret: patience and time",
    "secret: {{ .Values.secret }}",
    "Cookie: two cups of flour",
    "basic authentication is on, with basic understanding",
    "session_id: abc123",
    "2026-01-01T00:00:00Z",
    "user@example.org wrote at 10:30",
)


def test_the_corpus_has_a_thousand_secrets() -> None:
    assert len(CORPUS) == 1000


@pytest.mark.parametrize("kind", KINDS)
def test_no_secret_is_left(kind: str) -> None:
    left = [text for each, secret, text in CORPUS if each == kind and secret in redact(text)]
    assert not left, left[:3]


@pytest.mark.parametrize("kind", KINDS)
def test_no_part_of_a_secret_is_left(kind: str) -> None:
    for each, secret, text in CORPUS:
        if each == kind:
            cleaned = redact(text)
            assert not any(secret[at : at + 8] in cleaned for at in range(len(secret) - 8)), (text, cleaned)


@pytest.mark.parametrize("text", INNOCENT)
def test_ids_and_prose_stay_as_they_are(text: str) -> None:
    assert redact(text) == text
    assert redact_value({"id": text, "note": [text]}) == {"id": text, "note": [text]}


@pytest.mark.parametrize("table", ["SHAPES", "LATER", "LAST", "DOCUMENTED"])
def test_known_shapes_of_secrets_are_removed_whole(table: str) -> None:
    draw, left = random.Random(5), []
    for name, shape in getattr(secret_shapes, table).items():
        text, secret = secret_shapes.said(shape, draw)
        shown = redact(text)
        if any(secret[at : at + 8] in shown for at in range(max(1, len(secret) - 7))):
            left.append((name, text, shown))
    assert not left, left[:3]


@pytest.mark.parametrize("text", secret_shapes.PLAIN)
def test_code_and_prose_about_secrets_stay_as_they_are(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("fields", secret_shapes.PLAIN_FIELDS, ids=str)
def test_fields_without_a_secret_stay_as_they_are(fields: dict[str, object]) -> None:
    assert redact_value(fields) == fields


@pytest.mark.parametrize("value", ["yourMother7", "data.x9f2", "[ab]Xy9!", "xxxy", "include7", "***abc"])
def test_passwords_that_resemble_a_placeholder_are_removed(value: str) -> None:
    assert redact_value({"password": value}) == {"password": "[secret: password]"}


def test_every_kind_of_key_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "internals" / "redaction.md").read_text()
    assert [kind for kind in KEY_KINDS if kind not in page] == []


def test_ordinary_values_stay() -> None:
    ordinary = list(secret_shapes.ordinary(random.Random(9)))
    assert len(ordinary) == 500
    assert [text for text in ordinary if redact(text) != text] == []
    assert [text for text in ordinary if redact_value({"value": text}) != {"value": text}] == []


def test_secret_fields_are_recognized_by_name_in_any_spelling() -> None:
    for name in ("PGPASSWORD", "dbPassword", "X-Auth-Token", "groq_key", "API Key", "SECRET_KEY_BASE", "Authorization"):
        value = "a1B2c3D4e5F6g7H8i9J0"
        assert redact_value({name: value}) == {name: "[secret: password]"}, name
    kept = {"primary_key": "customer_id", "next_token": "a1B2c3D4e5F6g7H8", "sort_key": "user#12", "monkey": "one 12"}
    assert redact_value(kept) == kept


def test_the_value_of_a_variable_with_a_secret_name_is_removed() -> None:
    variable = {"name": "DB_PASSWORD", "value": "correcthorse"}
    assert redact_value([variable]) == [{"name": "DB_PASSWORD", "value": "[secret: password]"}]
    assert redact_value({"name": "LEVEL", "value": "debug"}) == {"name": "LEVEL", "value": "debug"}


def test_registry_credentials_are_recognized_by_their_field() -> None:
    held = {"auths": {"registry.example": {"auth": base64.b64encode(b"ann:correct horse").decode()}}}
    assert redact_value(held) == {"auths": {"registry.example": {"auth": "[secret: password]"}}}
    assert redact_value({"auth": "oauth2"}) == {"auth": "oauth2"}


def _twice(text: str) -> str:
    return base64.b64encode(base64.b64encode(text.encode())).decode()


NAMED = {
    "YAML": ("db:\n  password: {}\n  user: ann", "- passwd: {} # old", "pwd: '{}'", 'api_key: "{}"', "secret: {}"),
    "prose": ("log in with password: {}", "the API key: {}", "my secret: {}\nkeep it", "new passphrase: {}."),
    "env": ("token={}", "TOKEN='{}'", "export DB_PASSWD={}", "auth_token={}&x=1"),
    "JSON": ('{{"pwd": "{}"}}', '{{"log": "user: a\\npassword: {}\\nx: y"}}', '{{"log": "a\\nDB_PASSWORD={}\\nb"}}'),
    "commands": ("mysql --password {} db", "run --api-key={}", "curl --cookie 'sid={}' x"),
    "XML": ("<password>{}</password>",),
    "cookies": (
        "Cookie: theme=dark; sid={}",
        "set-cookie: sid={}; Path=/; HttpOnly",
        '{{"headers": {{"cookie": "a=1; b={}"}}}}',
        '{{"set-cookie": ["sid={}; Path=/"]}}',
        "GET /cart;JSESSIONID={}?x=1",
        "PHPSESSID={}",
    ),
}


@pytest.mark.parametrize("secret", ["hunter2x", "Tr0ub4dor", "correcthorse"])
@pytest.mark.parametrize("form", NAMED)
def test_text_after_a_secret_name_is_removed(form: str, secret: str) -> None:
    for text in NAMED[form]:
        assert secret not in redact(text.format(secret)), text


@pytest.mark.parametrize("text", ["password: hunter2", "AKIAABCDEFGHIJKLMNOP is the key", '{"token": "a1b2c3d4"}'])
def test_a_secret_encoded_repeatedly_in_base64_is_removed(text: str) -> None:
    for encoded in (_twice(text), _twice(_twice(text)), base64.b64encode(f"see {_twice(text)}".encode()).decode()):
        assert redact(f"state {encoded} end") == "state [secret: encoded] end"
    innocent = _twice("nothing of the kind, the password is wrong")
    assert redact(innocent) == innocent


def test_basic_credentials_are_removed_without_a_header() -> None:
    encoded = base64.b64encode(b"aladdin:open sesame").decode()
    assert redact(f"sent Basic {encoded} to it") == "sent Basic [secret: authorization] to it"


def test_cookies_and_long_numbers_in_secret_fields_are_removed() -> None:
    value = {"cookie": "x", "Set-Cookie": ["x", "y"], "password": 123456, "token": 12, "retry": {"pin_token": 98765}}
    assert redact_value(value) == {
        "cookie": "[secret: password]",
        "Set-Cookie": ["[secret: password]"] * 2,
        "password": "[secret: password]",
        "token": 12,
        "retry": {"pin_token": "[secret: password]"},
    }


def test_a_secret_after_an_escaped_line_end_is_removed() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    assert secret not in redact(json.dumps({"log": f"first\n{secret}\nlast"}))


def test_redacting_twice_equals_redacting_once() -> None:
    for _, _, text in CORPUS:
        assert redact(redact(text)) == redact(text)


def test_invisible_characters_do_not_hide_a_secret() -> None:
    assert "[secret: github token]" in redact("ghp_" + "\u200b".join("a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"))


def test_any_text_in_a_secret_field_is_removed() -> None:
    value = {"login": {"userPassword": "hunter2", "apiKey": "abc", "user": "ann"}, "tokens": [1], "token": None}
    assert redact_value(value) == {
        "login": {"userPassword": "[secret: password]", "apiKey": "[secret: password]", "user": "ann"},
        "tokens": [1],
        "token": None,
    }


def test_a_pack_contains_no_secrets() -> None:
    chance = random.Random(1)
    some = chance.sample(CORPUS, 60)
    calls = [
        call(n, arguments={"q": text, "password": secret}, result=[text], error=text if n % 7 == 0 else None)
        for n, (_, secret, text) in enumerate(some)
    ]
    texts = "\n".join(text for _, _, text in some[:20])
    made = trace(texts, texts, calls, reasoning=(texts,), error=texts)
    found = Span("t", "s2", "", "search", Kind.RETRIEVAL, 1, 2, documents=(texts, {"text": texts}))
    packed = pack(redacted(replace(made, spans=(*made.spans, found))), b"s" * 32, 100_000)
    assert "documents found by search" in packed.text
    assert not [secret for _, secret, _ in some if secret in packed.text]


@pytest.mark.parametrize(
    "piece",
    [
        *("a-", "a_", "a.", "y", "sk-", "a://", "token=", '"token":"', "-----BEGIN PRIVATE KEY-----"),
        *("password: ", "password:", "password: a", "\npwd: ", "\\npwd:x", "token: a1", "cookie: a", "Cookie: a="),
        *("<password>", "--token ", "api key: \n", 'secret:"', " ", "\n", "YWFh", "basic "),
    ],
)
def test_redaction_of_long_repeated_text_finishes(piece: str) -> None:
    assert redact(piece * (200_000 // len(piece)))


PLACES: dict[str, Callable[[str], dict[str, Any]]] = {
    "attribute": lambda text: {"calls": [call(1, arguments={"q": text})]},
    "result": lambda text: {"calls": [call(1, result=text)]},
    "nested JSON": lambda text: {"calls": [call(1, result=json.dumps({"body": json.dumps({"log": [text]})}))]},
    "JSON in JSON in text": lambda text: {"user": "got " + json.dumps(json.dumps({"body": {"text": text}}))},
    "base64": lambda text: {"calls": [call(1, result=base64.b64encode(text.encode()).decode())]},
    "base64 for URLs": lambda text: {
        "answer": "?state=" + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    },
    "error": lambda text: {"error": text, "calls": [call(1, error=f"failed: {text}")]},
    "reasoning": lambda text: {"reasoning": (text,)},
    "event": lambda text: {"answer": f"exception: {text}"},
}


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in (1, 2, 3))])
@pytest.mark.parametrize("place", PLACES)
def test_no_secret_reaches_the_provider_from_any_part_of_a_trace(place: str, part: int) -> None:
    leaks = []
    for kind, secret, text in CORPUS[part::4]:
        shown = redacted(trace(**PLACES[place](text)))
        packed = pack(shown, b"s" * 32, 12_000)
        sent = "".join(message["content"] for message in messages(packed, RUBRIC, {"calls": shown.tool_calls}))
        hidden = (secret, json.dumps(secret)[1:-1], *_encodings(text))
        leaks += [(kind, text)] * any(each in sent for each in hidden)
    assert not leaks, (len(leaks), leaks[:5])


def _encodings(text: str) -> tuple[str, str]:
    return base64.b64encode(text.encode()).decode(), base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def test_random_ids_are_not_redacted() -> None:
    chance = random.Random(7)
    ids = [str(uuid.UUID(int=chance.getrandbits(128), version=4)) for _ in range(1000)]
    ids += [f"{chance.getrandbits(bits):0{bits // 4}x}" for bits in (64, 128, 256) for _ in range(1000)]
    ids += ["call_" + "".join(chance.choice(_ALNUM) for _ in range(24)) for _ in range(1000)]
    ids += [base64.b64encode(chance.randbytes(32)).decode() for _ in range(1000)]
    assert [id_ for id_ in ids if redact(id_) != id_] == []
