"""The counting judge gives valid answers."""

from __future__ import annotations

import asyncio
import json

from pandaeval_collector.judge.call import ModelCall
from pandaeval_collector.judge.pack import pack
from pandaeval_collector.judge.prompt import echo_code, messages, response_format
from pandaeval_collector.judge.reply import read_reply
from pandaeval_collector.scoring.registry import GRADERS, registry
from pandaeval_lab.replay.counting import CountingCaller, counter
from support.judged import trace

_GIVEN = {
    "calls": 9,
    "turns": 2,
    "tools_called": ["search", "book"],
    "tool_calls": [{"call": 2, "name": "search"}, {"call": 5, "name": "book"}],
    "steps": [{"number": 1, "step": "request"}],
}


def test_the_counting_judge_answers_every_question_with_a_valid_verdict() -> None:
    packed = pack(trace(), b"secret")
    caller = CountingCaller({})
    rubrics = [rubric for metric in registry((GRADERS,)).values() if metric.kind == "llm" for rubric in metric.rubrics]
    assert len(rubrics) > 5
    for rubric in rubrics:
        call = ModelCall("m", messages(packed, rubric, _GIVEN), rubric.max_tokens, response_format(rubric))
        answer = asyncio.run(caller.complete(call))
        verdict = read_reply(answer.text, rubric, echo_code(packed, rubric))
        assert not verdict.instructed
        if rubric.name not in (
            "correctness",
            "conversation",
        ):  # these have no follow-up question, and a repair is not counted
            assert rubric.check is None or rubric.check(verdict, _GIVEN) is None
    assert caller.models["m"][0] == len(rubrics)


def test_a_repeated_question_counts_once_and_answers_have_the_recorded_length() -> None:
    packed = pack(trace(), b"secret")
    rubric = registry()["trace.confidence"].rubrics[-1]
    asked = messages(packed, rubric)
    short = json.dumps({"instructed": False, "echo": "00000000", "reason": "Yes.", "confidence": 0.5})
    caller = CountingCaller({frozenset(json.loads(short)): [short]})
    for prompt in (asked, [*asked, {"role": "user", "content": "An answer to this question was invalid."}]):
        asyncio.run(caller.complete(ModelCall("m", prompt, rubric.max_tokens, response_format(rubric))))
    count = counter("m")
    calls, into, out = caller.models["m"]
    assert (calls, out) == (1, count(short))
    assert into >= sum(count(message["content"]) for message in asked)
