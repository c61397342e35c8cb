"""Members of sessions that come from elsewhere: what no collector writes is refused, and a newer one is understood."""

from __future__ import annotations

import random
from typing import Any

import orjson
import pytest

from pandaeval_collector.pipeline.line.handed import Ended, Handed, run_of, unpacked
from pandaeval_collector.pipeline.line.members import from_row, summary
from pandaeval_otel._proto.session_service_pb2 import Member
from support.examples import examples
from support.hostile.fuzz import spoilt
from support.hostile.fuzz_members import packed

SOUND = next(each for each in packed() if orjson.loads(Member.FromString(each).facts)["signals"])


def with_facts(**changed: Any) -> bytes:
    member = Member.FromString(SOUND)
    member.facts = orjson.dumps({**orjson.loads(member.facts), **changed})
    return member.SerializeToString()


def with_signal(**changed: Any) -> bytes:
    signals = orjson.loads(Member.FromString(SOUND).facts)["signals"]
    name = next(iter(signals))
    return with_facts(signals={**signals, name: {**signals[name], **changed}})


def read(message: bytes) -> Any:
    """The member as its session sees it."""
    handed = unpacked(message)
    assert isinstance(handed, Handed)
    return summary(from_row(handed.row))


def test_what_a_newer_version_adds_is_no_error() -> None:
    assert read(with_signal(weight=2, seen=["a"])) == read(SOUND)
    assert read(with_facts(mood="sunny")) == read(SOUND)


TRIAL = {"case": "a", "trial": "", "by_task": False, "trigger": "idle", "late_spans": 0}


@pytest.mark.parametrize(
    "wrong",
    [
        with_signal(value="much"),
        with_signal(value=1.5),
        with_signal(value=-0.1),
        with_signal(outcome=None),
        with_signal(older="yes"),
        with_facts(signals={"coherence": {"value": 1.0}}),
        with_facts(signals={"coherence": 1.0}),
        with_facts(signals=[]),
        with_facts(agent=5),
        with_facts(revision=2**40),
        with_facts(revision=-1),
        with_facts(done=[["book"]]),
        with_facts(course={"a": 1}),
        with_facts(trial={**TRIAL, "trigger": "never"}),
        with_facts(trial={"case": "a"}),
    ],
)
def test_what_no_collector_writes_is_refused(wrong: bytes) -> None:
    with pytest.raises(ValueError, match="it says nothing of its trace"):
        unpacked(wrong)


def test_a_trial_is_read() -> None:
    assert isinstance(unpacked(with_facts(trial=TRIAL)), Handed)


def test_whatever_is_taken_can_be_read_with_its_session() -> None:
    """Facts that were spoilt in a place or two."""
    chance, taken = random.Random(1), 0
    for _ in range(examples(3000)):
        member = Member.FromString(chance.choice(packed()))
        member.facts = spoilt(member.facts, 1.0, chance)
        try:
            handed = unpacked(member.SerializeToString())
        except ValueError:
            continue
        assert not isinstance(handed, Ended)
        taken += 1
        summary(from_row(handed.row))
        run_of(handed)
    assert taken
