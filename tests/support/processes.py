"""An external program as a loopback process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

START_S = 60.0


class Process:
    """Runs ``command`` until ``ready_url`` returns 200, as a context manager. Logs to ``log_file``."""

    def __init__(
        self,
        command: Sequence[str | Path],
        log_file: Path,
        ready_url: str | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._command, self._log_file, self._ready_url = command, log_file, ready_url
        self._environ = os.environ | dict(environ or {})
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._log_file.parent.mkdir(parents=True, exist_ok=True)
        with self._log_file.open("ab") as log:
            self._process = subprocess.Popen(self._command, env=self._environ, stdout=log, stderr=log)
        try:
            self._wait()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def stop(self) -> None:
        """Send SIGTERM and wait."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(30) == 0, self.log()

    def end(self) -> None:
        """Send SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def log(self) -> str:
        return self._log_file.read_text(errors="replace")[-4000:]

    def _wait(self) -> None:
        deadline = time.monotonic() + START_S
        while self._ready_url is not None and not _answers(self._ready_url):
            assert self._process is not None
            assert self._process.poll() is None, f"{self._command[0]} ended:\n{self.log()}"
            assert time.monotonic() < deadline, f"{self._command[0]} does not become ready:\n{self.log()}"
            time.sleep(0.1)


def data_at(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=60) as response:
        return json.load(response)["data"]


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return bool(response.status == 200)
    except OSError:
        return False
