"""PandaEval collectors behind a real OpenTelemetry Collector that balances by trace ID."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from support.collector import CollectorProcess
from support.made_traces import Composer, MadeTrace
from support.otelcol import ConfiguredOtelcol
from support.ports import free_ports
from support.processors import until
from support.senders import GrpcSender

HOSTNAME = "pandaeval-headless"
SpanKey = tuple[bytes, bytes]


def missing() -> str:
    """Return missing requirements for a per-process hosts file."""
    if shutil.which("unshare") is None:
        return "unshare"
    tried = subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "the right to make a mount namespace"


class Names:
    """The addresses of :data:`HOSTNAME` for processes started by ``within``."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "hosts"
        self._file.write_text("")
        mounts = f"mount --bind {self._file} /etc/hosts"
        self.within: Sequence[str] = ("unshare", "-rm", "sh", "-c", f'{mounts} && exec "$@"', "sh")

    def set(self, addresses: Sequence[str]) -> None:
        """Replace the addresses, in place."""
        with self._file.open("r+") as file:
            file.write("".join(f"{each} {HOSTNAME}\n" for each in addresses))
            file.truncate()


class Balanced:
    """Collectors on one port behind the balancer, as a context manager."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (port,) = free_ports(1)
        self._folder, self._settings, self._port = folder, settings, port
        self._names = Names(folder)
        static = 'static: {hostnames: ["${env:PANDAEVAL_1}", "${env:PANDAEVAL_2}"]}'
        dns = f'dns: {{hostname: {HOSTNAME}, port: "{port}", interval: 1s}}'
        self.balancer = ConfiguredOtelcol("loadbalanced.yaml", folder, {}, {static: dns}, self._names.within)
        self.collectors: list[CollectorProcess] = []
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Balanced:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def add(self) -> CollectorProcess:
        """Start a collector. :meth:`tell` makes it known to the balancer."""
        number = len(self.collectors) + 1
        settings = {"PANDAEVAL_SERVER__GRPC": f"127.0.0.{number}:{self._port}", **self._settings}
        made = self._stack.enter_context(CollectorProcess(self._folder / f"collector-{number}", settings))
        self.collectors.append(made)
        return made.start()

    def open(self) -> None:
        """Start the balancer and wait until it answers."""
        self._stack.enter_context(self.balancer)
        with contextlib.closing(GrpcSender(self.balancer.grpc)) as door:
            until(lambda: door.send(ExportTraceServiceRequest()).acknowledged, "the balancer's start", 120)

    def tell(self, *collectors: CollectorProcess) -> None:
        """Publish these addresses under the host name."""
        self._names.set([each.settings["PANDAEVAL_SERVER__GRPC"].partition(":")[0] for each in collectors])


class Sender:
    """Sends spans to the balancer and records acknowledgements. Not thread-safe."""

    def __init__(self, target: str, patience_s: float = 60.0) -> None:
        self._door, self._patience_s = GrpcSender(target), patience_s
        self.acknowledged: set[SpanKey] = set()

    def send(self, parts: Sequence[tuple[MadeTrace, Sequence[Span]]]) -> None:
        request = ExportTraceServiceRequest()
        for trace, spans in parts:
            request.MergeFrom(trace.request(spans))
        until(lambda: self._door.send(request).acknowledged, "an answer", self._patience_s)
        self.acknowledged |= {(span.trace_id, span.span_id) for _, spans in parts for span in spans}

    def close(self) -> None:
        self._door.close()


class Load:
    """Sends traces in two halves while the context is open."""

    def __init__(self, target: str, seed: int, pause_s: float = 0.1, together: int = 4) -> None:
        self._sender, self._composer = Sender(target), Composer(seed)
        self._pause_s, self._together = pause_s, together
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._guarded, args=(self._run,))
        self.traces: list[MadeTrace] = []

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopping.set()
        self._thread.join()
        self._sender.close()
        if self._failure is not None and not any(error):
            raise self._failure

    @property
    def acknowledged(self) -> set[SpanKey]:
        """Return the acknowledged spans, complete after the context ends."""
        return self._sender.acknowledged

    def _run(self) -> None:
        while not self._stopping.wait(self._pause_s):
            made = [self._composer.trace() for _ in range(self._together)]
            self.traces += made
            self._sender.send([(trace, first_half(trace)) for trace in made if first_half(trace)])
            self._sender.send([(trace, second_half(trace)) for trace in made])

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # raised again when the context ends
            self._failure = error


def first_half(trace: MadeTrace) -> Sequence[Span]:
    """Return the spans that ended first; none for a single span."""
    return trace.spans[: len(trace.spans) // 2]


def second_half(trace: MadeTrace) -> Sequence[Span]:
    """Return the remaining spans, with the root."""
    return trace.spans[len(trace.spans) // 2 :]
