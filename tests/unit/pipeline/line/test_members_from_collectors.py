"""Session members from other collectors."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import Any

import orjson
import pytest

from pandaeval_collector.pipeline.line.handover import Handed, unpacked
from pandaeval_collector.pipeline.line.members import from_row, summary
from pandaeval_otel._proto.member_pb2 import Member
from support.hostile.fuzz import spoilt
from support.line import RunningPipeline
from support.packed_members import packed

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
    """Return the member as its session reads it."""
    handed = unpacked(message)
    assert isinstance(handed, Handed)
    return summary(from_row(handed.row))


def test_additions_of_a_newer_version_are_ignored() -> None:
    assert read(with_signal(weight=2, seen=["a"])) == read(SOUND)
    assert read(with_facts(mood="sunny")) == read(SOUND)


@pytest.mark.parametrize(
    "wrong",
    [
        with_signal(value="much"),
        with_signal(value=1.5),
        with_signal(value=-0.1),
        with_signal(outcome=None),
        with_signal(older="yes"),
        with_facts(signals={"coherence": {"value": 1.0, "why": None}}),
        with_facts(signals={"coherence": {"outcome": "scored", "value": 1.0}}),
        with_facts(signals={"coherence": 1.0}),
        with_facts(signals=[]),
        with_facts(agent=5),
        with_facts(revision=2**40),
        with_facts(revision=-1),
        with_facts(done=[["book"]]),
    ],
)
def test_a_member_with_invalid_facts_is_rejected(wrong: bytes) -> None:
    with pytest.raises(ValueError, match="its trace cannot be read"):
        unpacked(wrong)


def test_an_error_does_not_quote_content() -> None:
    with pytest.raises(ValueError, match="its trace cannot be read") as raised:
        unpacked(with_facts(revision="a secret of the user"))
    assert "secret" not in str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("answer", [b"", b"\0\0\0\0\1\0\0\0\xff", b"\0" * 8 + b"\xff", b"\4\0\0\0\0\0\0\0\0\0\xc0\x7f"])
def test_a_member_with_an_unreadable_answer_is_rejected(answer: bytes) -> None:
    member = Member.FromString(SOUND)
    member.answer = answer
    with pytest.raises(ValueError, match="its trace cannot be read"):
        unpacked(member.SerializeToString())


async def test_every_accepted_member_can_be_scored_with_its_session(tmp_path: Path) -> None:
    chance, taken = random.Random(1), []
    for number in range(2000):
        member = Member.FromString(chance.choice(packed()))
        member.trace_id = number.to_bytes(16, "big")
        member.facts = spoilt(member.facts, 1.0, chance)
        message = member.SerializeToString()
        with contextlib.suppress(ValueError):
            handed = unpacked(message)
            assert isinstance(handed, Handed)
            taken.append(message)
    assert len(taken) > 10
    async with RunningPipeline(tmp_path) as line:
        await line.adopt(taken)
        await line.settle()
        assert not line.telemetry.total("pandaeval.sessions", "failed")
