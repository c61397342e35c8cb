"""Open traces are handed over to another collector with TLS and a token, or stay where they are; a stop never fails."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from opentelemetry.trace import use_span

from support.agents import run_agent, scored
from support.certificates import make_certificates
from support.collector import CollectorProcess
from support.processors import Recording, processor, provider

TOKEN = "s3cret"
PATIENT = {f"PANDAEVAL_CLOSE__{name}": "1h" for name in ("QUIET", "IDLE", "MAX_AGE")}


@dataclass(frozen=True)
class Peer:
    """What is wrong between a collector that stops and the one that takes over; ``says``: what the log does then."""

    says: str = ""
    authority: str = "good"
    token: str = TOKEN
    scheme: str = "https://"


PEERS = {
    "all is well": Peer(),
    "an unknown authority": Peer("store.drain_certificate", authority="other"),
    "a file that is gone": Peer("cannot be read", authority=""),
    "a wrong token": Peer("authorization: Bearer", token="another"),
    "in the clear": Peer("write https://", scheme="http://"),
}


SLOW = ("an unknown authority", "in the clear", "a file that is gone", "a wrong token")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in PEERS])
def test_open_traces_are_handed_over_or_stay(name: str, tmp_path: Path) -> None:
    peer = PEERS[name]
    for authority in ("good", "other"):
        make_certificates(tmp_path / authority)
    trusted = tmp_path / "trusted.pem"
    shutil.copyfile(tmp_path / (peer.authority or "good") / "ca.pem", trusted)
    serving = {
        "PANDAEVAL_SERVER__TLS__CERT": str(tmp_path / "good" / "server.pem"),
        "PANDAEVAL_SERVER__TLS__KEY": str(tmp_path / "good" / "server.key"),
        "PANDAEVAL_SERVER__TOKEN_ENV": "THE_TOKEN",
        "THE_TOKEN": TOKEN,
    }
    with CollectorProcess(tmp_path / "heir", serving) as heir, CollectorProcess(tmp_path / "leaving") as leaving:
        heir.start()
        forwarding = {
            "PANDAEVAL_STORE__ON_SHUTDOWN": "forward",
            "PANDAEVAL_STORE__DRAIN_TO": f"{peer.scheme}localhost:{heir.grpc_port}",
            "PANDAEVAL_STORE__DRAIN_CERTIFICATE": str(trusted),
            "PANDAEVAL_SERVER__TOKEN_ENV": "THE_TOKEN",
            "THE_TOKEN": peer.token,
        }
        leaving.start(**PATIENT, **forwarding)
        sent = _open_trace(leaving, peer.token)
        if not peer.authority:
            trusted.unlink()
        assert leaving.stop() == 0, leaving.log()
        assert "Traceback" not in leaving.log()
        assert peer.says in leaving.log()
        assert not leaving.results()
        if not peer.says:
            heir.until(lambda: sent in scored(heir.results()), "done with what it took over")
            assert "handed over" in leaving.log()
        leaving.start()
        leaving.until(leaving.at_rest, "at rest")
        assert scored(leaving.results()) == (set() if not peer.says else {sent})
        assert scored(heir.results()) == ({sent} if not peer.says else set())


def _open_trace(collector: CollectorProcess, token: str) -> str:
    """A trace that the collector has, and waits for the rest of."""
    telemetry = Recording()
    tracing = provider(processor(collector.grpc, telemetry, token=token))
    with use_span(tracing.get_tracer("caller").start_span("never ends")):
        trace_id = run_agent(tracing.get_tracer("t"))
        assert tracing.force_flush()
        assert telemetry["traces", "acknowledged", ""] == 1
    return trace_id
