"""Turns of recorded conversations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pandaeval_collector.judge.turns import TurnView, turn_view
from pandaeval_lab.replay.files import Input
from pandaeval_lab.replay.trace_files import TraceFiles

OWN = Path(__file__).parent / "captures"
SHARED = Path(__file__).parents[3] / "shared"
THEIRS = SHARED / "captures"
ASKED = "langgraph_genai"
SILENT = frozenset(
    {
        *("adk", "agent_framework_nocontent", "autogen", "autogen_team", "openai_v2_nocontent"),
        "pydantic_ai_nocontent",
    }
)
"""Recorded without user messages."""


def views(path: Path) -> Iterator[TurnView]:
    """Yield the turns of all traces, in start order."""
    with TraceFiles() as run:
        for request in Input(str(path)).requests():
            run.add(request)
        for trace in run.traces():
            if not trace.is_step:
                yield from (turn_view(trace, index) for index in range(len(trace.turns)))


def asked(path: Path) -> list[str]:
    return [view.user_message for view in views(path) if view.user_message is not None]


@pytest.mark.parametrize("path", sorted(OWN.glob("*/good_session.otlp.jsonl")), ids=lambda path: path.parent.name)
def test_all_frameworks_give_the_same_user_messages(path: Path) -> None:
    assert asked(path) == asked(OWN / ASKED / path.name)
    assert len(asked(path)) == 4


@pytest.mark.parametrize("path", sorted(OWN.glob("*/good_session.otlp.jsonl")), ids=lambda path: path.parent.name)
def test_every_turn_has_its_own_tool_calls_and_history(path: Path) -> None:
    expected = [view.tool_calls for view in views(OWN / ASKED / path.name)]
    found = [*views(path)]
    assert [[call.name for call in view.tool_calls] for view in found] == [[c.name for c in each] for each in expected]
    history_lengths = [len(view.history) for view in found if view.said]
    assert history_lengths == [view.turn_index for view in found if view.said]
    assert history_lengths == sorted(history_lengths)


def _truth() -> list[str]:
    truth = json.loads((THEIRS / "GROUND_TRUTH.json").read_text())
    return [str(turn["user"]) for turn in truth["scenarios"]["multi_turn"]["turns"]]


@pytest.mark.slow
@pytest.mark.skipif(not THEIRS.is_dir(), reason="the recordings are not part of this repository")
def test_recorded_conversations_have_the_expected_user_messages() -> None:
    for path in sorted(THEIRS.glob("*/multi_turn.otlp.jsonl")):
        if path.parent.name in SILENT:
            continue
        assert asked(path) == _truth(), path.parent.name
