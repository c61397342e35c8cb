"""Backup and upgrade commands, and documented series."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from contextlib import closing
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from support.collector import CollectorProcess
from support.made_traces import Composer
from support.own_metrics import PAGE
from support.senders import GrpcSender

_BACKUP = Path(__file__).parents[2] / "docs/operate/backup-upgrade.md"


def _send(collector: CollectorProcess, seed: int) -> None:
    composer = Composer(seed)
    with closing(GrpcSender(collector.grpc)) as door:
        for _ in range(5):
            assert door.send(composer.trace(5).request()).acknowledged


def test_a_backup_of_a_running_collector_can_be_restored(tmp_path: Path) -> None:
    (command,) = re.findall(r"## Backup.*?```bash\n(.*?)\n```", _BACKUP.read_text(), re.DOTALL)
    with CollectorProcess(tmp_path / "first") as collector:
        collector.start()
        _send(collector, 1)
        collector.until(collector.at_rest, "at rest")
        command = command.replace("python ", f"{sys.executable} ", 1)
        done = subprocess.run(
            ["bash", "-ec", command],
            env={"PANDAEVAL_DATA": str(collector.data)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
        assert (tmp_path / "backup.db").stat().st_mode & 0o777 == 0o600, "only its owner may read it"
        until_then = len(collector.results())
        _send(collector, 2)
        collector.until(collector.at_rest, "at rest")
        afterwards = {result["id"] for result in collector.results()[until_then:]}
    with CollectorProcess(tmp_path / "second") as restored:
        restored.data.mkdir(mode=0o700)
        (tmp_path / "backup.db").rename(restored.data / "pandaeval.db")
        restored.start()
        _send(restored, 1)
        assert restored.counts()["spans", "duplicate", ""] == 25, "spans from before the backup must be duplicates"
        _send(restored, 2)
        restored.until(lambda: len(restored.results()) >= len(afterwards), "done with what came after the backup")
        restored.until(restored.at_rest, "at rest")
        assert {result["id"] for result in restored.results()} == afterwards


def test_every_exposed_series_and_label_is_documented(tmp_path: Path) -> None:
    table = PAGE.read_text().partition("<!-- own metrics -->")[2]
    with CollectorProcess(tmp_path) as collector:
        collector.start()
        _send(collector, 1)
        collector.until(collector.at_rest, "at rest")
        with urllib.request.urlopen(f"http://127.0.0.1:{collector.health_port}/metrics", timeout=60) as response:
            text = response.read().decode()
    families = [each for each in text_string_to_metric_families(text) if each.name.startswith("pandaeval_")]
    assert len(families) > 10
    for family in families:
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert f"(`{name}`;" in table
        (row,) = (line for line in table.splitlines() if f"(`{name}`;" in line)
        named = {
            word.replace(".", "_") for word in re.findall(r"`([\w.]+)`", table if "Attributes: as for" in row else row)
        }
        labels = {label.removeprefix("pandaeval_") for sample in family.samples for label in sample.labels}
        assert labels - {"le"} <= named, name
