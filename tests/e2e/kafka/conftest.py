"""One broker for all tests here; each has topics of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support import kafka


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka.Broker]:
    """Skip where a part is missing."""
    pytest.importorskip("confluent_kafka")
    if kafka.missing():
        pytest.skip(f"needs {kafka.missing()}")
    with kafka.Broker(tmp_path_factory.mktemp("broker")) as started:
        yield started
