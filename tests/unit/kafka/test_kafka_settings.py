"""The config section ``kafka``."""

from __future__ import annotations

import pytest

from pandaeval_collector.config import ConfigError, load
from pandaeval_collector.kafka.client import client, producer

_BROKERS = {"PANDAEVAL_KAFKA__BROKERS": "somewhere:9092"}
_READS = _BROKERS | {"PANDAEVAL_KAFKA__TOPIC": "spans"}
_WRITES = _BROKERS | {"PANDAEVAL_EXPORTERS__KAFKA__TOPIC": "scores"}
_TIMEOUT = "PANDAEVAL_KAFKA__OPTIONS__SESSION__TIMEOUT__MS"


@pytest.mark.parametrize(
    ("environ", "reads", "scores_sessions", "hands_over"),
    [
        ({}, False, True, False),
        (_WRITES | {"PANDAEVAL_KAFKA__SESSIONS": "topic"}, False, True, False),
        (_READS, True, False, False),
        (_READS | {"PANDAEVAL_KAFKA__SESSIONS": "here"}, True, True, False),
        (_READS | {"PANDAEVAL_KAFKA__SESSIONS": "topic"}, True, True, True),
    ],
)
def test_topic_and_sessions_settings_decide_reading_scoring_and_handover(
    environ: dict[str, str], reads: bool, scores_sessions: bool, hands_over: bool
) -> None:
    kafka = load(None, environ).kafka
    assert (kafka.topic is not None, kafka.scores_sessions, kafka.hands_over) == (reads, scores_sessions, hands_over)


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        (_BROKERS, "set kafka.topic or exporters.kafka.topic"),
        ({"PANDAEVAL_KAFKA__TOPIC": "spans"}, "kafka.topic needs kafka.brokers"),
        ({"PANDAEVAL_EXPORTERS__KAFKA__TOPIC": "scores"}, "exporters.kafka.topic needs kafka.brokers"),
        (_READS | {_TIMEOUT: "5999"}, "whole number of 6000 or more"),
        (_READS | {_TIMEOUT: "45s"}, "whole number of 6000 or more"),
    ],
)
def test_incomplete_or_invalid_kafka_settings_are_rejected(environ: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(None, environ)


def test_consumer_group_options_are_not_passed_to_the_producer() -> None:
    instance = {"PANDAEVAL_KAFKA__OPTIONS__GROUP__INSTANCE__ID": "pod-0"}
    kafka = load(None, _READS | instance | {_TIMEOUT: "6000"}).kafka
    assert kafka.session_timeout_s == 6.0
    of_consumers = {"group.instance.id": "pod-0", "session.timeout.ms": 6000}
    assert of_consumers.items() <= client(kafka, {}).items()
    assert not of_consumers.keys() & producer(kafka, {}).keys()
