"""A person's verdict among log records is a label: not content of the trace, not our own output, not a claim to be."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from pandaeval_otel.wire.fragments import Split
from pandaeval_otel.wire.labels import HumanLabel
from pandaeval_otel.wire.splitting import OWN_SCOPE, split_logs
from support.labels import TRACE, event, request


def split(*records: Any, scope: str = "reviews") -> Split:
    return split_logs(request(*records, scope=scope).SerializeToString())


@pytest.mark.parametrize("scope", ["reviews", OWN_SCOPE])
def test_a_verdict_is_a_label_in_whatever_scope_it_comes(scope: str) -> None:
    found = split(event(score=0.25, label="fail", annotator="ada", comment="Booked the wrong day."), scope=scope)
    assert found.labels == [
        HumanLabel(TRACE, "trace.task_completion", 0.25, False, "ada", 1_700_000_000.0, "Booked the wrong day.")
    ]
    assert (found.decoded, found.fragments, found.own_output, found.claimed, found.ignored) == (1, [], 0, 0, 0)


def test_in_our_own_scope_the_id_of_a_result_makes_it_no_output_of_ours() -> None:
    found = split(event(label="pass", more={"pandaeval.result.id": "f" * 32}), scope=OWN_SCOPE)
    assert (len(found.labels), found.own_output, found.claimed) == (1, 0, 0)


@pytest.mark.parametrize("kind", ["llm", "code", ""])
def test_what_other_evaluators_say_is_none(kind: str) -> None:
    found = split(event(label="pass", kind=kind))
    assert (found.labels, len(found.fragments)) == ([], 1)
    assert split(event(label="pass", kind=kind), scope=OWN_SCOPE).claimed == 1


def test_an_older_sdk_names_the_event_in_an_attribute() -> None:
    record = event(label="pass", more={"event.name": "gen_ai.evaluation.result"})
    record.event_name = ""
    assert [label.passed for label in split(record).labels] == [True]


def test_a_verdict_on_a_session_needs_no_trace() -> None:
    by_level = event(name="session.agent_reliability", label="Good", more={"gen_ai.conversation.id": "chat-7"})
    without = event(name="agent_reliability", score=1, trace=b"", more={"session.id": "chat-8"})
    assert [(label.unit, label.metric, label.passed) for label in split(by_level, without).labels] == [
        ("chat-7", "session.agent_reliability", True),
        ("chat-8", "session.agent_reliability", None),
    ]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (event(label="perhaps"), "'perhaps' is no verdict: write pass or fail, or a score from 0 to 1"),
        (event(), "there is neither a score nor a label"),
        (event(score=4.0), "the score '4.0' is no number from 0 to 1 (of 1 to 5 stars: (stars - 1) / 4)"),
        (event(score=float("nan")), "is no number from 0 to 1"),
        (event(name="", label="pass"), "gen_ai.evaluation.name is missing"),
        (event(name="turn.helpfulness", label="pass"), "the level 'turn' is neither trace nor session"),
        (event(name="session.x", label="pass"), "it names no session"),
        (event(name="trace.x", label="pass", trace=b""), "it names no trace"),
    ],
)
def test_one_that_says_nothing_usable_is_rejected_and_costs_no_other(record: Any, said: str) -> None:
    found = split(record, event(label="pass"))
    assert (found.rejected, len(found.labels), found.decoded) == (1, 1, 2)
    assert said in found.message


def test_what_outsiders_send_is_bounded() -> None:
    long = "x" * 5000
    (label,) = split(event(name=long, label="pass", annotator=long, comment=long)).labels
    assert max(len(label.metric), len(label.annotator), len(label.comment), len(label.unit)) <= 1000


def test_the_verdict_is_not_part_of_its_trace() -> None:
    content = event(kind="llm", score=0.5)
    both = ExportLogsServiceRequest.FromString(request(content, event(label="pass")).SerializeToString())
    found = split_logs(both.SerializeToString())
    assert [len(fragment.items) for fragment in found.fragments] == [1]
    assert len(found.labels) == 1
