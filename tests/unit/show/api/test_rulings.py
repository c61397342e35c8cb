"""Open questions and trial runs of rulings."""

from __future__ import annotations

import pytest

from pandaeval_collector.show.api.problems import ProblemError
from pandaeval_collector.show.api.rulings import RulingTrial, _trial, grouped
from pandaeval_collector.store.correctness import StandingVerdict

NULL, NULL_TOO = (
    "Is an explicit null for an optional argument wrong?",
    "Does passing null for an optional parameter count as a wrong argument?",
)
OFFER = "Is an offer that the policy forbids a fault if it was never carried out?"


def verdict(
    no: int, question: str = "", passed: bool | None = None, agent: str = "shop", labelled: bool = False
) -> StandingVerdict:
    level = "trace" if no > 0 else "session"
    return StandingVerdict(no, f"{level}.correctness", agent, passed, question, labelled, f"{no:032x}", None)


OPEN = [verdict(1, OFFER), verdict(2, NULL), verdict(-3, NULL_TOO, agent="desk"), verdict(4, NULL)]


def test_questions_with_the_same_meaning_are_grouped_with_all_their_runs() -> None:
    null, offer = (group.shown() for group in grouped(OPEN))
    assert (null.question, null.wordings, null.runs, null.agents) == (NULL, [NULL_TOO], 3, ["desk", "shop"])
    assert (offer.question, offer.wordings, offer.runs) == (OFFER, [], 1)
    assert grouped([verdict(5, passed=True)]) == []


def test_a_ruling_is_tried_on_runs_of_its_question_and_some_labelled_and_decided_runs() -> None:
    decided = [verdict(no, passed=True) for no in range(100, 140)]
    labelled = [verdict(no, passed=False, labelled=True) for no in range(200, 260)]
    null = grouped(OPEN)[0].shown()
    spec = _trial(RulingTrial(text="It is right.", question=null.id, author="Jo"), [*OPEN, *decided, *labelled])
    assert set(spec.about) == {2, -3, 4, *range(100, 120), *range(200, 250)}
    assert spec.metrics == ("session.correctness", "trace.correctness")
    assert spec.ruling is not None
    assert [spec.ruling[name] for name in ("text", "author", "question", "agent")] == ["It is right.", "Jo", NULL, ""]


def test_a_ruling_for_one_agent_is_tried_only_on_runs_of_that_agent() -> None:
    spec = _trial(RulingTrial(text="It is right.", agent="desk"), OPEN)
    assert spec.about == (-3,)
    for trial in (RulingTrial(text="x", agent="nobody"), RulingTrial(text="x", question="none")):
        with pytest.raises(ProblemError, match="no unclear run"):
            _trial(trial, OPEN)
