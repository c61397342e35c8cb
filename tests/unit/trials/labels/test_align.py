"""Rulings against labels: choice, proof, refusal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from pandaeval_lab.alignment.align import LEAST, JudgedUnit, LabelledRun, align

RUNS = [LabelledRun(f"run {at}", at % 3 > 0, f"session {at}") for at in range(120)]
MENDS, SPOILS, IDLE = "mends", "spoils", "idle"


class Judges:
    """Passes every run. ``mends`` agrees with the labels, ``spoils`` contradicts them."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, set[str]]] = []

    def __call__(self, text: str, runs: Sequence[LabelledRun]) -> Mapping[str, JudgedUnit]:
        self.asked.append((text, {run.unit for run in runs}))
        rules = {MENDS: lambda run: run.passed, SPOILS: lambda run: not run.passed}
        return {run.unit: JudgedUnit(rules.get(text, lambda run: True)(run), "said") for run in runs}


def test_the_best_ruling_is_chosen_on_one_half_and_proven_on_the_other() -> None:
    judges = Judges()
    found = align(RUNS, judges, [IDLE, SPOILS], lambda errors: [MENDS])
    assert found.proven is not None
    assert (found.proven.text, found.proven.source) == (MENDS, "judge")
    assert found.proven.held_out is not None
    assert found.proven.held_out.after == found.proven.held_out.n
    half = {run.unit for run in RUNS if not run.held_out}
    assert [(text, units == half) for text, units in judges.asked[1:4]] == [
        (IDLE, True),
        (SPOILS, True),
        (MENDS, True),
    ]
    assert judges.asked[4] == (MENDS, {run.unit for run in RUNS if run.held_out}), "tested once, on the held-out half"
    assert len(judges.asked) == 5, "other rulings are not tried on the held-out half"
    assert [each.why for each in found.tried] == ["another ruling was better"] * 2 + [""]


def test_a_ruling_without_gain_is_rejected_without_using_the_other_half() -> None:
    judges = Judges()
    found = align(RUNS, judges, [IDLE])
    assert (found.proven, found.tried[0].why, found.tried[0].held_out) == (
        None,
        "no gain on the first half of the labels",
        None,
    )
    assert len(judges.asked) == 2


def test_a_gain_by_chance_is_not_proven() -> None:
    lucky = [run.unit for run in RUNS if not run.held_out and not run.passed][:3]

    def judging(text: str, runs: Sequence[LabelledRun]) -> Mapping[str, JudgedUnit]:
        return {run.unit: JudgedUnit(not (text and run.unit in lucky)) for run in runs}

    found = align(RUNS, judging, ["lucky"])
    assert found.proven is None
    assert found.tried[0].seen.gain > 0
    assert found.tried[0].why == "no gain is proven on the other half of the labels"


def test_only_errors_of_the_first_half_are_used_to_propose_rulings() -> None:
    shown: list[LabelledRun] = []

    def proposing(errors: Sequence[tuple[LabelledRun, JudgedUnit]]) -> Sequence[str]:
        shown.extend(run for run, _ in errors)
        return []

    found = align(RUNS, Judges(), (), proposing)
    assert shown == [run for run in RUNS if not run.held_out and not run.passed]
    assert found.errors == len(shown)
    assert found.tried == []


def test_a_missing_verdict_counts_as_wrong() -> None:
    found = align(RUNS, lambda text, runs: {} if text else Judges()(text, runs), ["silent"])
    assert found.tried[0].seen.after == 0


def test_fewer_than_40_labels_are_an_error() -> None:
    with pytest.raises(ValueError, match=rf"needs at least {LEAST} labelled runs in the input, but there are only 39"):
        align(RUNS[:39], Judges())


def test_the_runs_of_a_session_are_in_one_half() -> None:
    halves = {LabelledRun(f"run {at}", True, "one session").held_out for at in range(20)}
    assert len(halves) == 1


@pytest.mark.parametrize("session", ["one", "two", "three", "four", "five"])
def test_labels_of_a_single_session_are_an_error(session: str) -> None:
    with pytest.raises(ValueError, match=r"all labelled runs are in one half, .*; label more sessions"):
        align([LabelledRun(f"run {at}", True, session) for at in range(LEAST)], Judges(), [IDLE])
