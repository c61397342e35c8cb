"""Two collectors hand their sessions to one owner: together they say what one collector says that gets everything."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from support.collector import CollectorProcess
from support.made_traces import Composer, MadeTrace
from support.owned_sessions import Standing, forwarder, has_handed_over, send, what_stands

_CLOSE = {"PANDAEVAL_CLOSE__QUIET": "300ms", "PANDAEVAL_CLOSE__IDLE": "1s", "PANDAEVAL_SESSION__IDLE": "4s"}
_OWNS = {**_CLOSE, "PANDAEVAL_SESSIONS__OWNER": "true"}


def test_two_collectors_and_an_owner_say_what_one_says(tmp_path: Path) -> None:
    traces = _traces(80, 7)
    with (
        CollectorProcess(tmp_path / "owner", _OWNS) as owner,
        forwarder(tmp_path, owner, "a") as a,
        forwarder(tmp_path, owner, "b") as b,
        CollectorProcess(tmp_path / "one", _CLOSE) as one,
    ):
        for each in (owner, a, b, one):
            each.launch()
        for each in (owner, a, b, one):
            each.until(each.ready, "ready")
        send(a, traces[::2])
        send(b, traces[1::2])
        send(one, traces)
        for each in (a, b):
            each.until(lambda each=each: has_handed_over(each), "handed over")
        owner.until(lambda: _has_all(owner, traces) and owner.at_rest(), "all sessions scored", 120)
        for each in (a, b):
            said = {f"{result['level']}.{result['metric']}" for result in each.results()}
            assert not any(name.startswith("session.") or name == "trace.loop_detection" for name in said)
            assert each.gauge("accounting_residual") == 0
        assert what_stands(owner, a, b) == _by_one(one, traces)


@pytest.mark.slow
def test_nothing_is_lost_or_said_twice_when_they_are_killed(tmp_path: Path) -> None:
    """A forwarder and the owner, each a few times: while traces come, and while members are being handed over."""
    traces = _traces(160, 11)
    with (
        CollectorProcess(tmp_path / "owner", _OWNS) as owner,
        forwarder(tmp_path, owner, "a") as a,
        forwarder(tmp_path, owner, "b") as b,
    ):
        for each in (owner, a, b):
            each.start()
        for number, victim in enumerate((owner, a, owner, b)):
            some = traces[40 * number : 40 * number + 40]
            send(a, some[::2])
            send(b, some[1::2])
            if victim is owner:
                owner.until(lambda at=40 * number: _members(owner) > at, "told of some")
            victim.kill()
            time.sleep(1)
            victim.start(**({"PANDAEVAL_FAIL_POINT": "after_export:2"} if number == 1 else {}))
        for each in (a, b):
            if not each.running():  # of its fail point: it has sent, and does not know it
                each.start()
            each.until(lambda each=each: has_handed_over(each), "handed over", 120)
        owner.until(lambda: _has_all(owner, traces) and owner.at_rest(), "all sessions scored", 120)
        for each in (a, b):
            assert each.gauge("accounting_residual") == 0
        assert what_stands(owner, a, b) == _once_by_one(tmp_path / "one", traces)
        assert _members(owner) == len([trace for trace in traces if trace.session is not None])


def _members(owner: CollectorProcess) -> int:
    with owner.database() as database:
        return int(database.execute("SELECT count(*) FROM members WHERE session > 0").fetchone()[0])


def _traces(number: int, seed: int) -> list[MadeTrace]:
    composer = Composer(seed)
    return [composer.trace() for _ in range(number)]


def _has_all(owner: CollectorProcess, traces: list[MadeTrace]) -> bool:
    """Whether the owner has scored every session."""
    wanted = {trace.session for trace in traces if trace.session is not None}
    return {result["session_id"] for result in owner.results() if result["level"] == "session"} >= wanted


def _by_one(one: CollectorProcess, traces: list[MadeTrace]) -> Standing:
    """What one collector says that was sent all traces."""
    one.until(lambda: _has_all(one, traces) and one.at_rest() and one.gauge("traces_open") == 0, "scored", 120)
    return what_stands(one)


def _once_by_one(folder: Path, traces: list[MadeTrace]) -> Standing:
    with CollectorProcess(folder, _CLOSE) as one:
        one.start()
        send(one, traces)
        return _by_one(one, traces)
