"""Labels among log records."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_otel.wire.fragments import Split
from pandaeval_otel.wire.splitting import OWN_SCOPE, split_logs
from support.labels import event, request


def split(*records: Any, scope: str = "reviews") -> Split:
    return split_logs(request(*records, scope=scope).SerializeToString())


@pytest.mark.parametrize("scope", ["reviews", OWN_SCOPE])
def test_a_human_verdict_is_ignored_in_every_scope(scope: str) -> None:
    found = split(event(score=0.25, label="fail", annotator="ada", comment="Booked the wrong day."), scope=scope)
    assert (found.decoded, found.fragments, found.own_output, found.claimed, found.ignored) == (1, [], 0, 0, 1)


def test_a_human_verdict_with_a_result_id_in_our_scope_is_not_own_output() -> None:
    found = split(event(label="pass", more={"pandaeval.result.id": "f" * 32}), scope=OWN_SCOPE)
    assert (found.ignored, found.own_output, found.claimed) == (1, 0, 0)


@pytest.mark.parametrize("kind", ["llm", "code", ""])
def test_results_of_other_evaluators_are_kept_as_content(kind: str) -> None:
    found = split(event(label="pass", kind=kind))
    assert (found.ignored, len(found.fragments)) == (0, 1)
    assert split(event(label="pass", kind=kind), scope=OWN_SCOPE).claimed == 1


def test_a_verdict_is_recognized_by_an_event_name_attribute() -> None:
    record = event(label="pass", more={"event.name": "gen_ai.evaluation.result"})
    record.event_name = ""
    assert split(record).ignored == 1


def test_a_verdict_on_a_session_needs_no_trace() -> None:
    without = event(name="agent_reliability", score=1, trace=b"", more={"session.id": "chat-8"})
    assert (split(without).ignored, split(without).rejected) == (1, 0)


def test_a_human_verdict_is_not_part_of_its_trace() -> None:
    found = split(event(kind="llm", score=0.5), event(label="pass"))
    assert [len(fragment.items) for fragment in found.fragments] == [1]
    assert (found.decoded, found.ignored) == (2, 1)
