"""Requests to child processes: answers, errors, hangs and deaths."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from pandaeval_collector.base.runtime import calls as calls_module
from pandaeval_collector.base.runtime.calls import Calls
from pandaeval_collector.base.runtime.child import ChildStartError
from pandaeval_collector.base.runtime.every import Backoff
from pandaeval_collector.base.runtime.peer import PICKLED, ChildEndedError, Codec, JsonCodec, RemoteError
from pandaeval_collector.judge.call import CallFailedError, CallFailure, OverBudgetError
from pandaeval_otel.base.component_errors import ERRORS
from support.receivers import until

_TOGETHER = """
import asyncio, sys, time
from pandaeval_collector.base.runtime.peer import JsonCodec, PICKLED
from pandaeval_collector.base.runtime.serving import serve_together
from pandaeval_otel.base.component_errors import ERRORS

async def opened(setup, peer):
    if setup == "refuses":
        raise ValueError("no such setup")

    async def echo(piece, *values):
        return [setup, *values]

    async def counts(piece, upto):
        return [await piece(number) for number in range(upto)]

    async def waits(piece):
        try:
            await asyncio.Future()
        finally:
            ERRORS.note("metric", "moody of a request", ValueError("nobody waits for it"))
            peer.tell("left")

    async def hangs(piece):
        time.sleep(1000)

    async def fails(piece, error):
        raise error

    async def odd(piece):
        raise type("OddError", (Exception,), {})("and local")

    async def asks(piece, name):
        return await peer.ask(name, 7)

    return {each.__name__: each for each in (echo, counts, waits, hangs, fails, odd, asks)}

serve_together(opened, codec=JsonCodec() if sys.argv[1:] == ["json"] else PICKLED)
"""
_IN_TURN = """
import os, time
from pandaeval_collector.base.runtime.serving import serve
from pandaeval_collector.judge.call import CallFailedError, CallFailure, OverBudgetError
from pandaeval_otel.base.component_errors import ERRORS

def opened(setup, tell):
    def work(seconds):
        tell("begun", seconds)
        time.sleep(seconds)
        return seconds

    def raises():
        ERRORS.note("metric", "moody of a child", ValueError("again"))
        raise KeyError("gone")

    def compute(seconds):
        until = time.process_time() + seconds
        while time.process_time() < until:
            pass
        return seconds

    return {"compute": compute, "work": work, "raises": raises, "ends": lambda: os._exit(3)}

serve(opened)
"""


class Counts:
    def __init__(self) -> None:
        self.all: list[tuple[str, str]] = []

    def __call__(self, what: str, number: int = 1, why: str = "") -> None:
        self.all.append((what, why))


Made = Callable[..., Any]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    (tmp_path / "together.py").write_text(_TOGETHER)
    (tmp_path / "together_json.py").write_text(f"import sys; sys.argv[1:] = ['json']\n{_TOGETHER}")
    (tmp_path / "in_turn.py").write_text(_IN_TURN)

    @asynccontextmanager
    async def opened(module: str, setup: Any = "setup", **given: Any) -> AsyncIterator[Calls]:
        environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
        calls = Calls("a child", module, setup, environ, **({"backoff": Backoff(0.0, 0.0)} | given))
        try:
            yield calls
        finally:
            await calls.close()

    return opened


@pytest.mark.parametrize(("module", "codec"), [("together", PICKLED), ("together_json", JsonCodec())])
async def test_parent_and_child_answer_requests_with_values_or_errors(made: Made, module: str, codec: Codec) -> None:
    async def double(_: Any, number: int) -> int:
        return 2 * number

    async def refuse(_: Any, number: int) -> None:
        raise RuntimeError("not today")

    async with made(module, handlers={"double": double, "refuse": refuse}, codec=codec) as calls:
        assert await calls.ask("echo", 1, "a") == ["setup", 1, "a"]
        assert await asyncio.gather(*(calls.ask("echo", each) for each in range(20))) == [
            ["setup", each] for each in range(20)
        ]
        assert await calls.ask("asks", "double") == 14
        with pytest.raises(Exception, match="not today"):
            await calls.ask("asks", "refuse")
        with pytest.raises(Exception, match="nothing"):
            await calls.ask("nothing")
        with pytest.raises(RemoteError, match="OddError: and local"):
            await calls.ask("odd")
        assert calls.busy == 0


async def test_a_piece_waits_until_earlier_pieces_were_handled(made: Made) -> None:
    taken: list[int] = []
    may_go = asyncio.Semaphore(2)

    async def take(number: int) -> str:
        taken.append(number)
        await may_go.acquire()
        return f"took {number}"

    async with made("together") as calls:
        asking = asyncio.ensure_future(calls.ask("counts", 4, on_piece=take, patience=5.0))
        await until(lambda: len(taken) == 3)
        assert await calls.ask("echo") == ["setup"]  # other requests are answered meanwhile
        assert taken == [0, 1, 2]
        may_go.release()
        may_go.release()
        assert await asking == [f"took {number}" for number in range(4)]


async def test_child_errors_keep_their_type_and_errors_of_on_piece_are_raised(made: Made) -> None:
    async def broke(_: int) -> None:
        raise ArithmeticError("too dear")

    async with made("together") as calls:
        with pytest.raises(OSError, match="no disk") as error:
            await calls.ask("fails", OSError(5, "no disk"))
        assert error.value.errno == 5
        assert "Traceback" in error.value.__notes__[0]
        with pytest.raises(ArithmeticError, match="too dear"):
            await calls.ask("counts", 2, on_piece=broke)
        assert await calls.ask("echo") == ["setup"]


async def test_cancelling_a_request_ends_it_in_the_child(made: Made) -> None:
    left: list[str] = []
    async with made("together", handlers={"left": lambda: left.append("left")}) as calls:
        asking = asyncio.ensure_future(calls.ask("waits"))
        await until(lambda: calls.busy == 1, 60)
        await calls.ask("echo")
        asking.cancel()
        await until(lambda: left == ["left"] and calls.busy == 0)
        assert ERRORS.counts()["metric", "moody of a request"] == 1, "errors noted before a notice arrive with it"


async def test_a_hanging_child_is_killed_and_the_next_request_starts_another(made: Made) -> None:
    counts = Counts()
    async with made("together", count=counts) as calls:
        await calls.start()
        first = calls.pid
        with pytest.raises(ChildEndedError, match="hung") as error:
            await calls.ask("hangs", patience=0.2)
        assert (error.value.hung, error.value.over_it) == (True, True)
        assert (error.value.pid, error.value.why) == (first, "hung")
        assert await calls.ask("echo") == ["setup"]
        assert calls.pid not in (first, None)
    assert counts.all == [("started", ""), ("ended", "hung"), ("started", "")]


async def test_a_child_that_hangs_in_a_cancelled_request_is_killed(made: Made) -> None:
    """No client waits any more at the limit."""
    counts = Counts()
    async with made("together", count=counts) as calls:
        await calls.start()
        asking = asyncio.ensure_future(calls.ask("hangs", patience=0.5))
        await until(lambda: calls.busy == 1)
        asking.cancel()
        await until(lambda: ("ended", "hung") in counts.all, 60)


async def test_a_request_cancelled_at_once_is_confirmed_by_the_child(made: Made) -> None:
    async with made("together", handlers={"left": lambda: None}) as calls:
        await calls.start()
        asking = asyncio.ensure_future(calls.ask("waits", patience=60.0))
        await asyncio.sleep(0)
        asking.cancel()
        await until(lambda: calls.busy == 0, 60)
        assert await calls.ask("echo", patience=60.0) == ["setup"]


async def test_the_shortest_patience_limits_a_hanging_child(made: Made) -> None:
    async with made("together") as calls:
        await calls.start()
        patient = asyncio.ensure_future(calls.ask("hangs", patience=1000.0))
        await until(lambda: calls.busy == 1)
        for asking in (calls.ask("echo", patience=0.3), patient):
            with pytest.raises(ChildEndedError, match="hung"):
                await asking


async def test_patience_begins_when_the_request_starts_in_the_child(made: Made) -> None:
    begun: list[float] = []
    async with made("in_turn", in_turn=True, handlers={"begun": begun.append}) as calls:
        assert await asyncio.gather(*(calls.ask("work", 0.5, patience=0.9) for _ in range(3))) == [0.5] * 3
        asking = [asyncio.ensure_future(calls.ask("work", each, patience=0.5)) for each in (1000, 0, 0)]
        await asyncio.wait(asking)
        errors = [task.exception() for task in asking]
        assert [(e.hung, e.over_it) for e in errors if isinstance(e, ChildEndedError)] == [
            (True, True),
            (True, False),
            (True, False),
        ]
    assert begun == [0.5, 0.5, 0.5, 1000]


_SPIN = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])}); print(flush=True)\nwhile True: pass"


@contextmanager
def _crowded(core: int) -> Iterator[None]:
    with ExitStack() as stack:
        for _ in range(4):
            each = stack.enter_context(
                subprocess.Popen([sys.executable, "-c", _SPIN, str(core)], stdout=PIPE, text=True)
            )
            stack.callback(each.kill)
            assert each.stdout is not None
            assert each.stdout.readline() == "\n"
        yield


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not show the CPU time of a child")
async def test_a_computing_child_is_limited_by_cpu_time_and_not_wall_time(made: Made) -> None:
    core = min(os.sched_getaffinity(0))
    async with made("in_turn", in_turn=True) as calls:
        await calls.start()
        os.sched_setaffinity(calls.pid, {core})
        with _crowded(core):
            since = time.monotonic()
            assert await calls.ask("compute", 0.4, patience=0.6) == 0.4
            assert time.monotonic() - since > 0.6, "the other processes used too little of the core for this test"
            with pytest.raises(ChildEndedError, match="hung"):
                await calls.ask("compute", 1000, patience=0.3)


async def test_a_cancelled_request_still_counts_as_the_cause_of_a_hang(made: Made) -> None:
    async with made("in_turn", in_turn=True, handlers={"begun": list[float]().append}) as calls:
        await calls.start()
        left = asyncio.ensure_future(calls.ask("work", 1000, patience=0.5))
        await asyncio.sleep(0)
        left.cancel()
        with pytest.raises(ChildEndedError) as error:
            await calls.ask("work", 0.0, patience=60.0)
        assert (error.value.hung, error.value.over_it) == (True, False)


async def test_a_kept_child_restarts_by_itself_and_reports_its_errors(
    made: Made, caplog: pytest.LogCaptureFixture
) -> None:
    counts = Counts()
    async with made(
        "in_turn", in_turn=True, keep=True, count=counts, handlers={"begun": list[float]().append}
    ) as calls:
        before = ERRORS.counts()["metric", "moody of a child"]
        with pytest.raises(KeyError, match="gone"):
            await calls.ask("raises")
        assert ERRORS.counts()["metric", "moody of a child"] == before + 1
        asking = [asyncio.ensure_future(calls.ask("ends")), asyncio.ensure_future(calls.ask("work", 0))]
        await asyncio.wait(asking)
        errors = [task.exception() for task in asking]
        assert [(e.why, e.over_it) for e in errors if isinstance(e, ChildEndedError)] == [
            ("exit_3", True),
            ("exit_3", False),
        ]
        await until(lambda: counts.all.count(("started", "")) == 2, 60)
        assert await calls.ask("work", 0) == 0
    assert "a child ended (process" in caplog.text


async def test_a_failed_start_is_explained_and_the_next_start_waits(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = Counts()
    async with made("together", setup="refuses", count=counts, backoff=Backoff(1000.0, 1000.0)) as calls:
        with pytest.raises(ChildStartError, match=r"^a child does not start: ValueError: no such setup$"):
            await calls.start()
        assert counts.all == [("not_started", "")]
        assert calls.pause > 0.0
        waiting = asyncio.ensure_future(calls.ask("echo"))
        await asyncio.sleep(0)
        calls.stop()
        with pytest.raises(ChildStartError, match="not started any more"):
            await waiting
        with pytest.raises(ChildStartError, match="not started any more"):
            await calls.start()
    monkeypatch.setattr(calls_module, "EDITION", 1)
    async with made("together") as calls:
        with pytest.raises(ChildStartError, match="restart the collector"):
            await calls.ask("echo")


async def test_a_child_that_breaks_the_protocol_is_killed(made: Made, tmp_path: Path) -> None:
    (tmp_path / "babbles.py").write_text(
        "from pandaeval_collector.base.runtime.child import Parent\n"
        "parent = Parent()\nparent.receive()\nparent.send()\nparent.receive()\nparent.send(b'?')\nparent.receive()\n"
    )
    async with made("babbles") as calls:
        with pytest.raises(ChildEndedError, match="signal 9"):
            await calls.ask("echo")


async def test_closing_fails_waiting_requests_and_ends_the_child(made: Made) -> None:
    async with made("together") as calls:
        asking = asyncio.ensure_future(calls.ask("waits"))
        await until(lambda: calls.busy == 1, 60)
        pid = calls.pid
        await calls.close()
        with pytest.raises(ChildEndedError):
            await asking
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of the parent's death")
def test_a_child_in_c_code_ends_with_its_parent(tmp_path: Path) -> None:
    """The child holds the interpreter."""
    (tmp_path / "holds.py").write_text(
        "import ctypes\nfrom pandaeval_collector.base.runtime.serving import serve\n"
        "def opened(setup, tell):\n"
        "    return {'hold': lambda: ctypes.PyDLL(None).sleep(1000)}\n"  # PyDLL keeps the interpreter's lock
        "serve(opened)\n"
    )
    (tmp_path / "parent.py").write_text(
        "import asyncio, os\nfrom pandaeval_collector.base.runtime.calls import Calls\n"
        "async def main():\n"
        "    calls = Calls('it', 'holds', None, os.environ)\n"
        "    await calls.start()\n"
        "    print(calls.pid, flush=True)\n"
        "    await calls.ask('hold')\n"
        "asyncio.run(main())\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    parent = subprocess.Popen(
        [sys.executable, str(tmp_path / "parent.py")], env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE
    )
    with parent:
        assert parent.stdout is not None
        child = Path(f"/proc/{int(parent.stdout.readline())}")
        time.sleep(0.5)  # the child holds the lock by then
        assert child.exists()
        parent.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + 30.0
        while child.exists() and "Z" not in (child / "stat").read_text().split()[2]:
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.mark.parametrize("error", [CallFailedError(CallFailure.TIMEOUT, "late", 3.0), OverBudgetError("spent")])
def test_judge_errors_are_unchanged_after_pickling(error: Exception) -> None:
    codec = PICKLED
    unpacked = codec.unpack(codec.pack(codec.error(error)))
    assert type(unpacked) is type(error)
    assert str(unpacked) == str(error)
    assert vars(unpacked) == vars(error)
