"""A running collector learns at forty labels, and scores with it after a kill."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from pandaeval_collector.cli import app
from pandaeval_collector.labels.learning import kept
from pandaeval_otel.wire.otlp_json import decode_json, traces_from_json
from support.collector import CollectorProcess
from support.learnable import AGENT, METRIC, LearnableSession, sessions
from support.senders import GrpcDoor

SETTINGS = {
    "PANDAEVAL_LEARN__INTERVAL": "200ms",
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


def counted(collector: CollectorProcess) -> list[float]:
    return [value for _, value in collector.series("learned_labels")]


def test_at_forty_labels_it_learns_and_a_killed_one_scores_the_next_session(tmp_path: Path) -> None:
    with CollectorProcess(tmp_path, SETTINGS) as collector:
        collector.start()
        for each in MADE[:40]:
            send(collector, each)
        collector.until(collector.at_rest, "decided")
        label(collector, tmp_path / "labels.csv", MADE[:39])
        collector.until(lambda: counted(collector) == [39.0], "looked at")
        folder = collector.data / "learned"
        assert kept(folder, "session", AGENT) is None, "a label is missing"

        label(collector, tmp_path / "last.csv", MADE[39:40])
        collector.until(lambda: kept(folder, "session", AGENT) is not None, "learned")
        model = kept(folder, "session", AGENT)
        assert model is not None
        assert (model.evidence.labels, problems(collector)) == (40, {})

        collector.kill()
        collector.start()
        send(collector, MADE[40])
        collector.until(lambda: MADE[40].id in problems(collector), "scored")
        assert problems(collector)[MADE[40].id] == model.version
        assert kept(folder, "session", AGENT) == model, "it is not learned again"
