"""Forks are independent processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pandaeval_collector.base.runtime.version import release
from support import forked
from support.collector import CollectorProcess

pytestmark = pytest.mark.skipif(not forked.is_wanted(), reason="only Linux has descriptors of processes")


def test_the_command_prints_and_ends_as_it_does_elsewhere() -> None:
    done = forked.run(["--version"], {"PATH": os.environ["PATH"]}, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{release()}\n", "")


def test_its_environment_is_its_own() -> None:
    wrong = forked.run(["config", "check"], {"PANDAEVAL_CLOSE__QUIET": "soon"}, timeout=60)
    assert wrong.returncode == 2
    assert "PANDAEVAL_CLOSE__QUIET" in wrong.stderr
    assert forked.run(["config", "check"], {}, timeout=60).returncode == 0


def test_signals_end_it_and_are_told(tmp_path: Path) -> None:
    with CollectorProcess(tmp_path) as collector:
        collector.start()
        process = collector.process
        assert isinstance(process, forked.Forked)
        assert process.pid != os.getpid()
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.kill()
        assert process.wait(60) == -signal.SIGKILL
        collector.start()
        assert collector.stop() == 0
        collector.kill()  # nothing is left to end


def test_where_there_are_other_modules_an_interpreter_is_started(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os; os._exit(7)")
    process = forked.popen("pandaeval_collector.pipeline.line.main", {"PYTHONPATH": str(tmp_path)}, silent=True)
    assert isinstance(process, subprocess.Popen)
    process.communicate(timeout=60)
    assert process.returncode == 7
    assert sys.executable in process.args  # type: ignore[operator]


def test_the_helper_outlives_those_who_asked_and_are_gone() -> None:
    process = forked.popen("pandaeval_collector.pipeline.line.main", {}, silent=True)
    assert process.stdin is not None
    assert process.stdout is not None
    number, pipes = process.pid, (process.stdin, process.stdout)
    del process  # with the connection on which its end would be told
    for pipe in pipes:
        pipe.close()
    until = time.monotonic() + 60
    while Path(f"/proc/{number}").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    assert forked.run(["--version"], {}, timeout=60).returncode == 0
