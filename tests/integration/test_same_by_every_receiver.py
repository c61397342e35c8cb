"""All receivers give the results of a file run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from golden.otlp_json import Request, requests
from pandaeval_lab.replay.files import Input
from support.collector import CollectorProcess
from support.kills import Results, differences, standing_results, uninterrupted
from support.senders import GrpcSender, HttpSender, SpanSender

ROOT = Path(__file__).parents[2]
GOLDEN, SHARED = ROOT / "tests/golden/captures", ROOT.parent / "shared/captures"
DOORS = ("OTLP/gRPC", "OTLP/HTTP protobuf", "OTLP/HTTP JSON")


def captures(folder: Path, scenarios: str = "*") -> list[Path]:
    return sorted(folder.glob(f"*/{scenarios}.otlp.jsonl"))


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(captures(GOLDEN, "good_session"), id="a session of each framework"),
        pytest.param(captures(GOLDEN), id="golden", marks=pytest.mark.slow),
        pytest.param(
            captures(SHARED),
            id="shared",
            marks=[pytest.mark.slow, pytest.mark.skipif(not SHARED.exists(), reason="../shared is not there")],
        ),
    ],
)
def test_all_receivers_give_the_results_of_a_file_run(files: Sequence[Path], tmp_path: Path) -> None:
    assert files
    expected = uninterrupted(request for file in files for request in Input(str(file)).requests())
    assert len({trace for trace, metric in expected if metric == "trace.coherence"}) > len(files) // 2

    found = by_every_receiver([request for file in files for request in requests(file.read_text())], tmp_path)

    for door, results in found.items():
        assert differences(results, expected) == [], door


def by_every_receiver(given: Sequence[Request], folder: Path) -> dict[str, Results]:
    """Return final results by receiver."""
    with contextlib.ExitStack() as stack:
        collectors = [stack.enter_context(CollectorProcess(folder / str(number))) for number in range(len(DOORS))]
        for collector in collectors:
            collector.launch()
        for collector in collectors:
            collector.until(collector.ready, "ready")
        doors = [stack.enter_context(opened(name, each)) for name, each in zip(DOORS, collectors, strict=True)]
        for request in given:
            for door in doors:
                answer = door.send(request)
                assert answer.acknowledged, answer
                assert not answer.rejected, answer
        for collector in collectors:
            collector.until(collector.at_rest, "at rest", 120)
        return {name: standing_results(each) for name, each in zip(DOORS, collectors, strict=True)}


@contextlib.contextmanager
def opened(name: str, collector: CollectorProcess) -> Iterator[SpanSender]:
    door: SpanSender = (
        GrpcSender(collector.grpc) if name == "OTLP/gRPC" else HttpSender(collector.http, name.endswith("JSON"))
    )
    with contextlib.closing(door):
        yield door
