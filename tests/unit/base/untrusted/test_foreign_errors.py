"""Foreign error texts in logs, jobs and results."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

from pandaeval_collector.analysis.embedding import EmbedderError
from pandaeval_collector.analysis.embedding.litellm_embedding import LiteLlmEmbedder
from pandaeval_collector.base.untrusted.foreign import LONGEST, explained, secrets_in, told

KEY = "k3y/of+ours-no-shape"


@pytest.mark.parametrize(
    "error_text",
    [
        f"Incorrect API key provided: {KEY}. You can find yours at https://example.org",
        f'401 {{"error": {{"headers": {{"authorization": "Bearer {KEY}"}}}}}}',
        f"GET https://api.example.org/v1?api-version=3&note={quote(KEY, safe='')} failed",
        f"x{KEY}x",
    ],
)
def test_a_known_secret_is_replaced_anywhere_in_an_error_text(error_text: str) -> None:
    found = told(error_text, secrets_in({"JUDGE_KEY": KEY}, "JUDGE_KEY"))
    assert KEY not in found
    assert quote(KEY, safe="") not in found
    assert "[secret: " in found


@pytest.mark.parametrize(
    ("error_text", "hidden"),
    [
        ("Incorrect API key provided: sk-proj-****abcd.", "abcd"),
        ("invalid x-api-key: q1w2e3", "q1w2e3"),
        ("Authorization: q1w2e3", "q1w2e3"),
        ("header 'Authorization': 'Bearer q1w2e3r4'", "q1w2e3r4"),
        ("sent Bearer q1w2e3r4 to the server", "q1w2e3r4"),
        ("could not reach https://ann:q1w2@host:1/v1", "q1w2"),
        ("could not reach https://q1w2e3@host:1/v1", "q1w2e3"),
        ("POST https://host/v1beta/models/m:generate?key=q1w2 failed", "q1w2"),
        ("POST https://host/x?a=1&access_token=q1w2&b=2", "q1w2"),
        ("subscription-key: q1w2e3", "q1w2e3"),
        ("AWS key AKIAABCDEFGHIJKLMNOP is not known", "AKIAABCDEFGHIJKLMNOP"),
        ("Set-Cookie: __cf_bm=q1w2e3; path=/", "q1w2e3"),
    ],
)
def test_text_that_looks_like_a_secret_is_replaced(error_text: str, hidden: str) -> None:
    assert hidden not in told(error_text)
    assert "[secret: " in told(error_text)


@pytest.mark.parametrize(
    "error_text",
    [
        "AuthenticationError: litellm.AuthenticationError: Missing Anthropic API Key - set ANTHROPIC_API_KEY",
        "This model's maximum context length is 8192 tokens, you asked for 9000 (8700 in the messages, 300 to come)",
        "NotFoundError: The model `gpt-9` does not exist. See https://example.org/docs?page=2",
        "Connection error to 127.0.0.1:8000",
        "the token limit is reached, basic tier",
    ],
)
def test_error_texts_without_secrets_are_unchanged(error_text: str) -> None:
    assert told(error_text) == error_text


def test_an_error_text_is_one_bounded_line_without_control_characters() -> None:
    error_text = told("busy\n\x1b]0;title\x07\x1b[2J\u202e\x9b31m\r\nFORGED " + "x " * 10_000)
    assert len(error_text) <= LONGEST
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202e]", error_text)
    assert "\\x1b]0;title" in error_text


def test_shortening_leaves_no_part_of_a_secret() -> None:
    for before in (LONGEST - 10, 19_990):
        assert KEY[:5] not in told("y" * before + " " + KEY * 3 + " tail", [KEY])


def test_a_traceback_in_an_error_text_is_left_out() -> None:
    assert told(
        "Invalid response object Traceback (most recent call last):\n  File x, received_args={'messages': …"
    ) == ("Invalid response object")
    assert explained(ValueError("no")) == "ValueError: no"


def test_secrets_are_read_from_the_named_and_typical_variables() -> None:
    environ = {
        "OPENAI_API_KEY": "0123456789",
        "HF_TOKEN": "abcdefghij",
        "AWS_SECRET_ACCESS_KEY": "ABCDEFGHIJ",
        "MY_JUDGE": "judgekey",
        "PWD": "/srv/application",
        "KEYBOARD": "qwertyuiop",
        "SHORT_KEY": "abc",
        "OTHER": "0011223344",
    }
    assert set(secrets_in(environ, "MY_JUDGE")) == {"0123456789", "abcdefghij", "ABCDEFGHIJ", "judgekey"}


def test_errors_of_an_embedding_provider_contain_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def refuse(**_: object) -> None:
        raise RuntimeError(f"Incorrect API key provided: {KEY}\x1b[2J")

    with pytest.raises(EmbedderError) as error:
        LiteLlmEmbedder("openai/x", refuse).embed(["text"])
    assert KEY not in str(error.value)
    assert "\x1b" not in str(error.value)
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__, "a traceback would show the provider's text"


def test_an_error_body_is_reduced_to_its_message_without_secrets() -> None:
    key = "sk-" + "a1" * 20
    body = {"error": {"message": f"Incorrect API key provided: {key}. " + "x" * 280 + key, "type": "invalid"}}
    error_text = told(f"AuthenticationError: Error code: 401 - {body}", [key])
    assert error_text.startswith("AuthenticationError: Error code: 401 - Incorrect API key provided: [secret: key]")
    assert "sk-a1" not in error_text
    assert "invalid" not in error_text
