"""Unreachable addresses are reported at once."""

from __future__ import annotations

import socket

import pytest

from pandaeval_lab.cli._reachable import unreachable


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_an_address_without_a_listener_is_reported_unless_a_proxy_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        assert unreachable(address) == ""
        assert unreachable(address.removeprefix("http://")) == ""
    assert "refused" in unreachable(address)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:3128")
    assert unreachable(address) == "", "with a proxy, it cannot be checked"
