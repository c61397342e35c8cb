"""Addresses in messages."""

from __future__ import annotations

import pytest

from pandaeval_collector.base.untrusted.printable import shown_address


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://kim:secret@host:4328/x?key=secret", "http://host:4328/x"),
        ("http://kim@host", "http://host"),
        ("http://kim:se@cret@host/@v1", "http://host/@v1"),
        ("http://kim:se/c?ret@host:99999", "http://host:99999"),
        ("kim:secret@host:4328", "host:4328"),
        ("http://host:4328/@v1", "http://host:4328/@v1"),
        ("http://host/@v1", "http://host/@v1"),
        ("http://[::1]:80/@v1", "http://[::1]:80/@v1"),
        ("http://kim:secret@[x\n", "http://[x\\n"),
        ("app.py:answer", "app.py:answer"),
        ("desk@night", "desk@night"),
    ],
)
def test_an_address_is_shown_without_user_password_and_query(url: str, shown: str) -> None:
    assert shown_address(url) == shown
