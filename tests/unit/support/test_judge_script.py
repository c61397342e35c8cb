"""The scripted judge answers every question."""

from __future__ import annotations

import pytest

from pandaeval_collector.judge.pack import Pack
from pandaeval_collector.judge.prompt import messages
from pandaeval_collector.judge.rubric import Rubric
from pandaeval_collector.scoring.registry import registry
from support.judge import GROUPING, rubric_of
from support.judge_kills import FailingProvider
from support.scripted_judge import GOOD, scripted_reply

RUBRICS = {
    rubric.name: rubric
    for rubric in (*GROUPING, *(rubric for metric in registry().values() for rubric in getattr(metric, "rubrics", ())))
}
PACK = Pack("the record", "c0de" * 3, "d" * 16, 10, ())


@pytest.mark.parametrize("rubric", RUBRICS.values(), ids=RUBRICS)
def test_each_question_is_recognised_and_its_good_answer_is_valid(rubric: Rubric) -> None:
    asked = messages(PACK, rubric)
    assert rubric_of({"messages": asked}) == rubric.name
    rubric.verdict.model_validate_json(scripted_reply(asked, rubric.name, GOOD))


def test_an_unknown_question_is_not_counted_as_answered_or_paid() -> None:
    provider = FailingProvider(seed=1, share=0.0)
    with pytest.raises(StopIteration):
        provider(0, {"messages": [{"role": "user", "content": '# Question\nWhat is it?\n\nSet "echo" to 0123abcd.'}]})
    assert (provider.answered, provider.usd) == ({}, 0.0)
