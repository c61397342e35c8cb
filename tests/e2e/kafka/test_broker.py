"""The broker keeps acknowledged messages after kill -9."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import kafka

pytestmark = pytest.mark.e2e


def test_acknowledged_messages_survive_a_kill_of_the_broker(tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka")
    if kafka.missing():
        pytest.skip(f"needs {kafka.missing()}")
    wanted = [(bytes([number]), b"value %d" % number) for number in range(50)]
    with kafka.Broker(tmp_path / "broker") as broker:
        broker.create("numbers", partitions=3)
        broker.produce("numbers", wanted)
        broker.kill()
        broker.start()
        found = broker.everything("numbers")
    assert sorted((message.key(), message.value()) for message in found) == wanted
    assert {message.partition() for message in found} == {0, 1, 2}
