"""Child processes run their parent's program."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import pandaeval_collector
from pandaeval_collector.base.runtime import child as child_module
from pandaeval_collector.base.runtime.child import ChildStartError, start_child, start_with


async def test_a_child_imports_the_package_of_its_parent(tmp_path: Path) -> None:
    """A checkout wins over an installed version."""
    (tmp_path / "where_from.py").write_text("import pandaeval_collector as c; print(c.__file__, end='')")
    child = await start_child("where_from", {**os.environ, "PYTHONPATH": str(tmp_path)})
    assert Path((await child.out.read()).decode()) == Path(pandaeval_collector.__file__)
    assert await child.wait() == 0


def _uvloop() -> asyncio.AbstractEventLoop:
    return pytest.importorskip("uvloop").new_event_loop()  # type: ignore[no-any-return]


@pytest.mark.parametrize("new_loop", [_uvloop, asyncio.new_event_loop])
def test_no_pipe_descriptor_is_closed_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """Another thread could have reused the descriptor."""
    (tmp_path / "says_it.py").write_text("print('it', end='')")
    popen, taken, again = child_module._popen, [], []

    class Reused(io.FileIO):
        """Records descriptors that are closed twice."""

        def close(self) -> None:
            if not self.closed and self in taken:
                try:
                    os.fstat(self.fileno())
                except OSError:
                    again.append(self.fileno())
            super().close()

    def watched(module: str, environ: Mapping[str, str], silent: bool) -> subprocess.Popen[bytes]:
        process = popen(module, environ, silent)
        for name, mode in (("stdin", "wb"), ("stdout", "rb")):
            with getattr(process, name) as pipe:
                taken.append(Reused(os.dup(pipe.fileno()), mode))
            setattr(process, name, taken[-1])
        return process

    monkeypatch.setattr(child_module, "_popen", watched)
    open_then: list[int] = []

    async def runs() -> None:
        for _ in range(3):
            await run()
            open_then.append(len(os.listdir("/proc/self/fd")))

    async def run() -> None:
        child = await start_child("says_it", {**os.environ, "PYTHONPATH": str(tmp_path)})
        assert await child.out.read() == b"it"
        assert await child.wait() == 0
        for _ in range(3):  # the loop closes them within these rounds
            await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(runs())
    assert [pipe.closed for pipe in taken] == [True] * 6
    assert not again
    assert open_then[-1] <= open_then[0], "other tests can close files meanwhile"


_ECHO = """
from pandaeval_collector.base.runtime.child import Parent

parent = Parent()
print("this is no frame")
while (body := parent.receive()) is not None:
    parent.send(body, b"!")
"""


async def test_frames_arrive_complete_and_in_order_in_both_directions(tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(_ECHO)
    child = await start_child("echo", {**os.environ, "PYTHONPATH": str(tmp_path)}, silent=True)
    for parts in ([], [b"a"], [b"a", b"\n" * 3], [b"b" * 5_000_000]):
        child.send(*parts)
        assert await child.receive() == b"".join(parts) + b"!"
    child.end_input()
    assert await child.receive() is None
    assert await child.wait() == 0


async def test_a_listening_child_exits_when_its_input_ends(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(
        "import threading\nfrom pandaeval_collector.base.runtime.child import Parent\n"
        "parent = Parent()\nparent.listen(parent.send)\nthreading.Event().wait()\n"
    )
    child = await start_child("waits", {**os.environ, "PYTHONPATH": str(tmp_path)})
    child.send(b"one")
    child.send(b"two")
    assert [await child.receive(), await child.receive()] == [b"one", b"two"]
    child.end_input()
    assert await child.wait() == 0


async def test_a_child_starts_with_its_first_frame_or_raises_a_start_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    (tmp_path / "echo.py").write_text(_ECHO)
    child, frame = await start_with(b"setup", "echo", environ)
    assert frame == b"setup!"
    child.kill()
    assert await child.wait() < 0
    (tmp_path / "ends.py").write_text("raise SystemExit(3)\n")
    with pytest.raises(ChildStartError, match=r"^does not start: it ended at once with 3$"):
        await start_with(b"", "ends", environ)
    (tmp_path / "silent.py").write_text("import sys\nsys.stdin.read()\n")
    monkeypatch.setattr(child_module, "_START_S", 0.01)
    monkeypatch.setattr(child_module, "_START_CHECK_S", 0.01)
    with pytest.raises(ChildStartError, match=r"^does not start: it sent no message, and used 0 s of CPU time$"):
        await start_with(b"", "silent", environ)

    def fails(*_: object) -> None:
        raise OSError("no memory")

    monkeypatch.setattr(child_module, "_popen", fails)
    with pytest.raises(ChildStartError, match=r"^cannot be started: no memory$"):
        await start_with(b"", "echo", environ)


_READY_LATE = """
import time

from pandaeval_collector.base.runtime.child import Parent

while time.process_time() < 1.5:
    pass
Parent().send(b"ready")
"""


async def test_a_busy_child_has_longer_to_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "late.py").write_text(_READY_LATE)
    monkeypatch.setattr(child_module, "_START_S", 0.5)
    child, frame = await start_with(b"", "late", {**os.environ, "PYTHONPATH": str(tmp_path)})
    assert frame == b"ready"
    child.kill()
    await child.wait()


async def test_a_child_that_uses_up_its_cpu_time_without_a_frame_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spins.py").write_text("while True:\n    pass\n")
    monkeypatch.setattr(child_module, "_START_S", 0.1)
    monkeypatch.setattr(child_module, "_START_CPU_S", 0.5)
    monkeypatch.setattr(child_module, "_START_CHECK_S", 0.1)
    with pytest.raises(ChildStartError, match=r"^does not start: it sent no message, and used [01] s of CPU time$"):
        await start_with(b"", "spins", {**os.environ, "PYTHONPATH": str(tmp_path)})


def test_a_child_ends_at_once_if_its_parent_has_ended(tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(_ECHO)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    for parent, code in ((os.getpid(), 0), (1 << 22, 1)):
        command = [sys.executable, "-P", "-m", "echo", f"--parent={parent}"]
        assert subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, check=False).returncode == code


async def test_a_child_has_no_arguments_that_users_did_not_give(tmp_path: Path) -> None:
    (tmp_path / "argv.py").write_text(
        "import sys\nfrom pandaeval_collector.base.runtime.child import Parent\n"
        "parent = Parent()\nparent.send(str(sys.argv[1:]).encode())\n"
    )
    child, frame = await start_with(b"", "argv", {**os.environ, "PYTHONPATH": str(tmp_path)})
    assert frame == b"[]"
    await child.wait()


@pytest.mark.parametrize(("inherited", "wanted", "value"), [(0, 10, 10), (4, 10, 10), (12, 10, 12)])
async def test_the_nice_value_of_a_child_does_not_add_to_that_of_its_parent(
    tmp_path: Path, inherited: int, wanted: int, value: int
) -> None:
    own = os.nice(0)
    if own:
        pytest.skip(f"the tests run at nice value {own}")
    (tmp_path / "nice.py").write_text(
        "import os\nfrom pandaeval_collector.base.runtime.child import Parent\n"
        f"os.nice({inherited})\nParent(nice={wanted}).send(str(os.nice(0)).encode())\n"
    )
    child, frame = await start_with(b"", "nice", {**os.environ, "PYTHONPATH": str(tmp_path)})
    assert frame == str(value).encode()
    await child.wait()
