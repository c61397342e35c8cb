"""Unreachable addresses are reported at once."""

from __future__ import annotations

import socket

import pytest

from pandaeval_lab.cli._reachable import unreachable


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_who_listens_is_there_and_who_does_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        assert unreachable(address) == ""
        assert unreachable(address.removeprefix("http://")) == ""
    assert "refused" in unreachable(address)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:3128")
    assert unreachable(address) == "", "only the proxy knows"
