"""One broker for all tests, with separate topics."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support import kafka


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka.Broker]:
    pytest.importorskip("confluent_kafka")
    if kafka.missing():
        pytest.skip(f"needs {kafka.missing()}")
    with kafka.Broker(tmp_path_factory.mktemp("broker")) as started:
        yield started
