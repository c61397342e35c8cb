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


def test_a_forked_command_has_its_normal_output_and_exit_code() -> None:
    done = forked.run(["--version"], {"PATH": os.environ["PATH"]}, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{release()}\n", "")


def test_a_forked_command_uses_the_given_environment() -> None:
    wrong = forked.run(["config", "check"], {"PANDAEVAL_CLOSE__QUIET": "soon"}, timeout=60)
    assert wrong.returncode == 2
    assert "PANDAEVAL_CLOSE__QUIET" in wrong.stderr
    assert forked.run(["config", "check"], {}, timeout=60).returncode == 0


def test_a_forked_collector_reports_the_signal_that_ended_it(tmp_path: Path) -> None:
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
        collector.kill()  # without effect, because it has ended


def test_a_pythonpath_in_the_environment_starts_a_new_interpreter(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os; os._exit(7)")
    process = forked.popen("pandaeval_collector.pipeline.line.main", {"PYTHONPATH": str(tmp_path)}, silent=True)
    assert isinstance(process, subprocess.Popen)
    process.communicate(timeout=60)
    assert process.returncode == 7
    assert sys.executable in process.args  # type: ignore[operator]


def test_the_fork_helper_works_after_a_process_object_was_dropped() -> None:
    process = forked.popen("pandaeval_collector.pipeline.line.main", {}, silent=True)
    assert process.stdin is not None
    assert process.stdout is not None
    number, pipes = process.pid, (process.stdin, process.stdout)
    del process  # closes the connection that would report its end
    for pipe in pipes:
        pipe.close()
    until = time.monotonic() + 60
    while Path(f"/proc/{number}").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    assert forked.run(["--version"], {}, timeout=60).returncode == 0
