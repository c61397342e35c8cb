"""A running collector scores with what was learned from its store, after a kill too."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from pandaeval_collector.analysis.stats.learned import LearnedModel
from pandaeval_collector.cli import app
from pandaeval_otel.wire.otlp_json import decode_json, traces_from_json
from support.collector import CollectorProcess
from support.learnable import AGENT, METRIC, LearnableSession, sessions
from support.senders import GrpcDoor

SETTINGS = {
    "PANDAEVAL_SESSION__IDLE": "1s",
    "PANDAEVAL_METRICS__ENABLED": "[session.problem]",
}
MADE = list(sessions(41))


def send(collector: CollectorProcess, session: LearnableSession) -> None:
    door = GrpcDoor(collector.grpc)
    for each in session.requests:
        assert door.send(traces_from_json(decode_json(each.encode()))).acknowledged


def label(collector: CollectorProcess, file: Path, made: list[LearnableSession]) -> None:
    rows = "".join(f"{each.id},{METRIC},{'fail' if each.bad else 'pass'}\n" for each in made)
    file.write_text(f"session_id,metric,label\n{rows}")
    outcome = CliRunner().invoke(app, ["labels", "import", str(file)], env={"PANDAEVAL_DATA": str(collector.data)})
    assert outcome.exit_code == 0, outcome.output


def problems(collector: CollectorProcess) -> dict[str, str]:
    return {each["session_id"]: each["metadata"]["learned"]["version"] for each in collector.results()}


def test_what_is_learned_from_its_store_scores_the_next_session_and_after_a_kill(tmp_path: Path) -> None:
    with CollectorProcess(tmp_path, SETTINGS) as collector:
        collector.start()
        for each in MADE[:40]:
            send(collector, each)
        collector.until(collector.at_rest, "decided")
        label(collector, tmp_path / "labels.csv", MADE[:40])
        outcome = CliRunner().invoke(app, ["learn", "--store", str(collector.data)])
        assert outcome.exit_code == 0, outcome.output
        [file] = (collector.data / "learned").iterdir()
        learned = LearnedModel.of_json(file.read_text())
        assert (learned.agent, learned.labels, problems(collector)) == (AGENT, 40, {})

        collector.kill()
        collector.start()
        send(collector, MADE[40])
        collector.until(lambda: MADE[40].id in problems(collector), "scored")
        assert problems(collector)[MADE[40].id] == learned.model.version
