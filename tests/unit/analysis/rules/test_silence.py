"""Texts without content, and lookalikes."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from pandaeval_collector.base.untrusted.silence import is_control, says_something

TOKENS = [
    "###STOP###",
    "<|endoftext|>",
    "<|im_end|>",
    "<|im_start|>assistant",
    "</s>",
    "<eos>",
    "[DONE]",
    "###TRANSFER###",
    "TERMINATE",
    " <|im_end|>\n<|endoftext|> ",
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
    "<end_of_turn>.",
]


@pytest.mark.parametrize("text", TOKENS)
def test_control_tokens_have_no_content(text: str) -> None:
    assert is_control(text)
    assert not says_something(text)


@pytest.mark.parametrize("text", ["", " \n", "...", "?!", "\u200b", "\u3164", "```\n```", "—", None])
def test_empty_text_is_no_control_token(text: str | None) -> None:
    assert not says_something(text)
    assert not is_control(text)


@pytest.mark.parametrize(
    "text",
    [
        "Yes",
        "4",
        "👍",
        "是",
        "да",
        "Done. ###STOP###",
        "The token <|endoftext|> ends a text.",
        "### Summary ###\nAll is well",
        "The process will terminate.",
        "[1] https://example.org",
        "<p>Hi</p>",
    ],
)
def test_text_with_content_is_recognized(text: str) -> None:
    assert says_something(text)
    assert not is_control(text)


@given(st.text(max_size=900))
def test_no_text_is_both_control_token_and_content(text: str) -> None:
    assert not (says_something(text) and is_control(text))


@given(st.text(alphabet=" .!?-\n\u200b", max_size=900), st.sampled_from(["a", "7", "é", "字"]))
def test_one_letter_or_digit_makes_a_text_content(silent: str, letter: str) -> None:
    assert says_something(silent + letter)
    assert says_something(letter + silent)
