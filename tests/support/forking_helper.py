"""The program of a helper: imports, then listens and forks. See :mod:`support.forked`."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer.main

from pandaeval_collector.base.runtime import failpoints
from pandaeval_collector.base.runtime.garbage import expect_imports
from pandaeval_collector.judge.process import _OWN_ENVIRONMENT
from support import commands, forked

_COLLECTOR = (
    *("pandaeval_collector.app.collector", "pandaeval_collector.cli._app", "pandaeval_collector.base.runtime.version"),
    *("pandaeval_collector.cli._config", "pandaeval_collector.base.runtime.garbage", "uvicorn.lifespan.off"),
    *("pandaeval_collector.base.runtime.logs", "typer._click.decorators", "encodings.idna", "uvloop"),
    *(
        "pandaeval_collector.show.api.app",
        "pandaeval_collector.show.api.pages",
        "pandaeval_collector.show.mcp.endpoint",
    ),
    *("pandaeval_collector.runs.manager", "pandaeval_collector.runs.settings"),
    *("pandaeval_collector.labels.rates", "pandaeval_collector.exporters.delivery.emitter"),
)
_FOUND_IN = ("pandaeval_collector.scoring.metrics", "pandaeval_collector.analysis.embedding", "pandaeval_otel.dialects")
_JUDGE = (
    *("pandaeval_collector.judge.provider", "litellm", "litellm.proxy._types"),
    *("fastapi", "openai.resources", "openai.lib.streaming.chat"),  # litellm imports these at its first call
)
_REQUEST_BYTES = 1 << 20


class Helper:
    """Forks until its standard input ends."""

    def __init__(self, folder: Path, listener: socket.socket, others: Sequence[socket.socket]) -> None:
        self._folder, self._listener, self._others = folder, listener, list(others)
        self._events = selectors.DefaultSelector()
        self._ends: dict[int, tuple[int, socket.socket]] = {}
        """Process ID and listener by descriptor of a fork."""
        self._judges: subprocess.Popen[bytes] | None = None

    def serve(self) -> dict[str, Any] | None:
        """Return the request in each fork, and ``None`` at the end."""
        for readable in (0, self._listener, *self._others):
            self._events.register(readable, selectors.EVENT_READ)
        while True:
            for key, _ in self._events.select():
                if key.fileobj == 0:
                    return self._end()
                if key.fd in self._ends:
                    self._tell_end(key.fd)
                elif key.fileobj is self._listener:
                    request = self._fork()
                    if request is not None:
                        return request
                else:
                    self._start_other(key.fileobj)

    def _fork(self) -> dict[str, Any] | None:
        connection, _ = self._listener.accept()
        message, files, *_ = socket.recv_fds(connection, _REQUEST_BYTES, 3)
        pid = os.fork()
        if pid == 0:
            connection.close()
            self._close()
            for standard, given in enumerate(files):
                os.dup2(given, standard)
        for given in files:
            os.close(given)
        if pid == 0:
            return dict(json.loads(message))
        descriptor = os.pidfd_open(pid)
        self._ends[descriptor] = (pid, connection)
        self._events.register(descriptor, selectors.EVENT_READ)
        self._tell(connection, pid)
        return None

    def _tell_end(self, descriptor: int) -> None:
        pid, connection = self._ends.pop(descriptor)
        self._events.unregister(descriptor)
        os.close(descriptor)
        _, status = os.waitpid(pid, 0)
        with connection:
            self._tell(connection, os.waitstatus_to_exitcode(status))

    def _tell(self, connection: socket.socket, number: int) -> None:
        with contextlib.suppress(ConnectionError):  # the caller may have been killed
            connection.send(str(number).encode())

    def _start_other(self, listener: Any) -> None:
        self._events.unregister(listener)
        self._others.remove(listener)
        self._judges = forked.helper("judge", self._folder, [listener.fileno()])
        listener.close()

    def _end(self) -> None:
        for pid, _ in self._ends.values():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        if self._judges is not None:
            self._judges.communicate()

    def _close(self) -> None:
        self._events.close()
        for listener in (self._listener, *self._others):
            listener.close()
        for descriptor, (_, connection) in self._ends.items():
            os.close(descriptor)
            connection.close()


def serve() -> None:
    """Return in each forked process."""
    expect_imports()
    kind, folder = sys.argv[1], Path(sys.argv[2])
    first, *others = (socket.socket(fileno=int(each)) for each in sys.argv[3:])
    if kind == "judge":
        os.environ.update(_OWN_ENVIRONMENT)
    for module in _JUDGE if kind == "judge" else (*_COLLECTOR, *_found()):
        importlib.import_module(module)
    if kind != "judge":
        _build_commands()
    gc.freeze()
    request = Helper(folder, first, others).serve()
    if request is not None:
        _become(request, folder)


def _build_commands() -> None:
    """Build the command tree once for all forks."""
    from pandaeval_collector.cli import app

    commands.install()
    group = typer.main.get_command(app)
    group.resolve_command(typer.Context(group), ["collector"])


def _found() -> list[str]:
    roots = [importlib.import_module(package) for package in _FOUND_IN]
    return [each.name for root in roots for each in pkgutil.walk_packages(root.__path__, f"{root.__name__}.")]


def _become(request: dict[str, Any], folder: Path) -> None:
    forked.goes_with_its_parent()
    os.environ.clear()
    os.environ.update(request["environ"])
    failpoints.arm(os.environ)  # fail points are usually read at import
    sys.argv = [request["main"], *request["arguments"]]
    if request["main"] == forked.COMMAND:
        if not request["own_children"]:
            forked.use(folder, os.getpid())
            forked.install()
        from pandaeval_collector.cli import main

        main()
    else:
        os.setsid()
        runpy.run_module(request["main"], run_name="__main__", alter_sys=True)
