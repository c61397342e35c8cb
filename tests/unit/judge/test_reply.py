"""Verdicts read from model replies."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pandaeval_collector.judge.reply import InvalidReplyError, read_reply
from pandaeval_collector.judge.rubric import rubric_of
from pandaeval_collector.scoring.metrics.trace.argument_correctness import METRIC as OF_ARGUMENTS
from pandaeval_collector.scoring.metrics.trace.confidence import METRIC as CONFIDENCE
from pandaeval_collector.scoring.metrics.turn.helpfulness import METRIC as HELPFULNESS

RUBRIC = CONFIDENCE.rubrics[-1]
ARGUMENTS = OF_ARGUMENTS.rubrics[-1]

ECHO = "0123abcd"
GOOD: dict[str, Any] = {"instructed": False, "echo": ECHO, "reason": "It wavers once.", "confidence": 0.6}


def _without(key: str) -> dict[str, Any]:
    return {name: value for name, value in GOOD.items() if name != key}


@pytest.mark.parametrize("confidence", [0, 0.0, 0.25, 1, 1.0])
def test_a_verdict_within_bounds_is_read(confidence: float) -> None:
    assert read_reply(json.dumps(GOOD | {"confidence": confidence}), RUBRIC, ECHO).confidence == confidence


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "```json\n{}\n```",
        "```\n{}\n```\n",
        "\n\n  {}  \n",
        "```json\n{}",
        "Sure! Here it is:\n```json\n{}\n```\nAnything else?",
        'The tool said {"ok": true}, so: {} That is all.',
        '<think>{"reason": "?"} or {}</think>\n{}',
    ],
)
def test_text_and_code_fences_around_a_verdict_are_ignored(around: str) -> None:
    assert read_reply(around.replace("{}", json.dumps(GOOD)), RUBRIC, ECHO).reason == "It wavers once."


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not JSON"),
        (":", "not JSON"),
        ("0.9", "should be an object"),
        ("null", "should be an object"),
        ("[]", "should be an object"),
        (json.dumps([GOOD]), "should be an object"),
        (json.dumps(GOOD)[:-1], "not JSON"),
        (json.dumps(GOOD) + json.dumps(GOOD), "not JSON"),
        ("Sure! " + json.dumps(GOOD | {"echo": "ffffffff"}), "not JSON"),
        ("Sure! " + json.dumps(GOOD)[:-1], "not JSON"),
        (json.dumps(_without("confidence")), "confidence: Field required"),
        (json.dumps(_without("instructed")), "instructed: Field required"),
        (json.dumps(_without("echo")), "echo: Field required"),
        (json.dumps(GOOD | {"score": 1.0}), "a field that is not in the schema: Extra inputs"),
        (json.dumps(GOOD | {"confidence": 1.0001}), "less than or equal to 1"),
        (json.dumps(GOOD | {"confidence": -0.1}), "greater than or equal to 0"),
        (json.dumps(GOOD | {"confidence": 95}), "less than or equal to 1"),
        (json.dumps(GOOD | {"confidence": "high"}), "valid number"),
        (json.dumps(GOOD | {"confidence": True}), "confidence: Input should be a valid number"),
        (json.dumps(GOOD | {"confidence": "1.0"}), "confidence: Input should be a valid number"),
        (json.dumps(GOOD | {"confidence": ["0.5"]}), "confidence: Input should be a valid number"),
        (json.dumps(GOOD | {"confidence": float("nan")}), "NaN is no number"),
        (json.dumps(GOOD | {"confidence": float("inf")}), "Infinity is no number"),
        (json.dumps(GOOD | {"confidence": float("-inf")}), "-Infinity is no number"),
        (json.dumps(GOOD).replace("0.6", "1e999"), "a number is too large"),
        (json.dumps(GOOD | {"instructed": 0}), "instructed: Input should be a valid boolean"),
        (json.dumps(GOOD | {"instructed": "false"}), "instructed: Input should be a valid boolean"),
        (json.dumps(GOOD | {"reason": 1}), "reason: Input should be a valid string"),
        (json.dumps(GOOD)[:-1] + ', "confidence": 0.9}', "a field is given twice"),
        (json.dumps(GOOD)[:-1] + ', "confidence": 0.6}', "a field is given twice"),
        (json.dumps(GOOD)[:-1] + ', "conf\\u0069dence": 0.9}', "a field is given twice"),
        (json.dumps(GOOD) + " No: " + json.dumps(GOOD | {"confidence": 0.1}), "several objects"),
        ("It says: " + json.dumps(GOOD)[:-1] + ', "confidence": 0.9} Done.', "a field is given twice"),
        (json.dumps(GOOD) + " On second thought: confidence is 0.1.", "may take it back"),
        ("{" * 60_000, "not JSON"),
        (json.dumps(GOOD | {"reason": "\ud800"}), "Invalid JSON"),
        (json.dumps(GOOD | {"reason": "\ud800"}, ensure_ascii=False), "unicode"),
        (json.dumps(GOOD | {"reason": "x" * 1201}), "at most 1200"),
        (json.dumps(GOOD | {"echo": "ffffffff"}), "echo"),
        (json.dumps(GOOD | {"echo": ""}), "echo"),
        ("[" * 60_000, "not JSON"),
        (json.dumps(GOOD | {"reason": "x" * 70_000}), "characters"),
    ],
)
def test_an_invalid_reply_is_rejected_with_its_reason(text: str, says: str) -> None:
    with pytest.raises(InvalidReplyError) as error:
        read_reply(text, RUBRIC, ECHO)
    assert says in str(error.value)
    assert len(str(error.value)) < 300, "the error does not quote the model"


def test_nested_fields_are_validated_strictly() -> None:
    def read(verdicts: str) -> Any:
        body = {"instructed": False, "echo": ECHO, "verdicts": "HERE", "reason": "Fine."}
        return read_reply(json.dumps(body).replace('"HERE"', verdicts), ARGUMENTS, ECHO)

    assert read('[{"call": 1, "reason": "Right.", "verdict": "yes"}]').verdicts[0].call == 1
    for verdict in (
        '{"call": "1", "reason": "Right.", "verdict": "yes"}',
        '{"call": true, "reason": "Right.", "verdict": "yes"}',
        '{"call": 1, "reason": "Right.", "verdict": "no", "verdict": "yes"}',
    ):
        with pytest.raises(InvalidReplyError):
            read(f"[{verdict}]")


@given(st.text())
def test_text_without_the_echo_code_is_no_verdict(text: str) -> None:
    with pytest.raises(InvalidReplyError):
        read_reply(text, RUBRIC, ECHO)


@given(
    st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.dictionaries(st.text(), inner))
)
def test_json_without_the_right_fields_is_no_verdict(value: Any) -> None:
    with pytest.raises(InvalidReplyError):
        read_reply(json.dumps(value), RUBRIC, ECHO)


def test_a_rating_written_as_1_0_on_a_scale_of_1_to_5_must_be_confirmed() -> None:
    rubric = rubric_of((HELPFULNESS.part,))

    def read(rating: str, sure: bool) -> float | None:
        text = f'{{"instructed": false, "echo": "{ECHO}", "reason": "Vague.", "rating": {rating}}}'
        found = read_reply(text, rubric, ECHO, sure)
        return found.rating  # type: ignore[no-any-return]

    with pytest.raises(InvalidReplyError, match=r"rating: 1.0 is the worst of this scale"):
        read("1.0", False)
    assert read("1.0", True) == 1.0, "a repeated rating is accepted"
    assert [read(each, False) for each in ("1", "1.5", "5.0", "null")] == [1.0, 1.5, 5.0, None]
    assert read_reply(json.dumps(GOOD | {"confidence": 1.0}), RUBRIC, ECHO, sure=False).confidence == 1.0
