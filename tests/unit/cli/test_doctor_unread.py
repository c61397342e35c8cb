"""`pandaeval doctor` names services with unread text, and damaged traces."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest

from pandaeval_collector.store.chunks import StoredTrace
from pandaeval_lab.cli import doctor
from pandaeval_otel.model import Trace

NOTE = "2 spans carry text under keys that no dialect reads: acme.input"
SHOP = Trace("0a" * 16, (), "0b" * 8, service="shop", notes=("other", NOTE))


def test_each_service_and_each_damaged_trace_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = [StoredTrace(b"1", []), StoredTrace(b"2", []), StoredTrace(b"3", [], "corrupt"), StoredTrace(b"4", [])]
    shown = iter([SHOP, SHOP, None, replace(SHOP, service="desk", notes=())])
    monkeypatch.setattr(doctor, "stored_traces", lambda connection: iter(stored))
    monkeypatch.setattr(doctor, "stored_trace", lambda parts: next(shown))
    damage, note = doctor._traces(sqlite3.connect(":memory:"))
    assert (damage.state, damage.text) == ("wrong", "store: the spans of trace 33 cannot be read: corrupt")
    assert (note.state, note.text) == ("note", f"service shop: {NOTE}")
