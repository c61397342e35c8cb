"""Damage reports of `pandaeval store` and `doctor`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from pandaeval_collector.store.chunks import stored_traces
from pandaeval_collector.store.connection import FILE_NAME, PAGE_BYTES, create
from pandaeval_lab.replay.files import Input, Request
from support.database import open_database
from support.ports import free_ports
from support.whole_store import change, make

_FLIP = "CAST(substr({0}, 1, 9) || x'00ff' || substr({0}, 12) AS BLOB)"
DAMAGE = {
    "chunks": f"UPDATE chunks SET data = {_FLIP.format('data')} WHERE id = 4",
    "kept": f"UPDATE kept SET data = {_FLIP.format('data')} WHERE no = 1",
    "results": "UPDATE results SET body = CAST(replace(CAST(body AS TEXT), '\"score\":', '\"score\":1') AS BLOB)"
    " WHERE seq = 3",
    "members": f"UPDATE members SET body = {_FLIP.format('body')} WHERE no = (SELECT max(no) FROM members)",
    "outbox": f"UPDATE outbox SET body = {_FLIP.format('body')} WHERE seq = (SELECT min(seq) FROM outbox)",
    "traces": "DELETE FROM chunks WHERE id = 5",
}


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    make(folder)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    (tmp_path / "pandaeval.db").write_bytes((made / "pandaeval.db").read_bytes())
    return tmp_path


def damage_pages(file: Path, *tables: str) -> None:
    """Overwrite the first page of each table."""
    with open_database(file) as database:
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        pages = [database.execute(query, (table,)).fetchone()[0] for table in tables]
    with file.open("r+b") as content:
        for page in pages:
            content.seek((page - 1) * PAGE_BYTES)
            content.write(b"\xff" * PAGE_BYTES)


def verified(folder: Path) -> list[dict[str, Any]]:
    found = run("store", "verify", "--store", str(folder), "--format", "json")
    damages = [json.loads(line) for line in found.stdout.splitlines()]
    assert found.exit_code == bool(damages), found.output
    return damages


class TestStore:
    def test_verify_finds_no_damage_in_an_intact_store(self, folder: Path) -> None:
        assert verified(folder) == []
        assert run("store", "verify", "--store", str(folder)).stdout == "no damage found\n"

    @pytest.mark.parametrize("where", [*DAMAGE])
    def test_verify_reports_damage_with_a_cure(self, folder: Path, where: str) -> None:
        assert change(folder, DAMAGE[where]) == 1
        [found] = verified(folder)
        assert found["where"] == where
        assert found["cure"]
        assert found["about"]
        assert "1 damage" in run("store", "verify", "--store", str(folder)).stdout

    @pytest.mark.parametrize("command", ["store verify", "store export -o -", "labels export"])
    def test_after_a_command_found_damaged_pages_the_next_start_moves_a_large_file_aside(
        self, folder: Path, command: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = folder / FILE_NAME
        damage_pages(file, "chunks", "people_labels")
        monkeypatch.setattr("pandaeval_collector.store.connection._SMALL_BYTES", 0)
        assert not create(file, "off"), "a start does not read all pages of a large file"
        result = run(*command.split(), "--store", str(folder))
        assert result.exit_code in (1, 2), result.output
        assert create(file, "off"), "the damaged file is moved aside"
        assert [*folder.glob(f"{FILE_NAME}.damaged-*")]

    def test_export_writes_a_file_that_evaluate_can_read(self, folder: Path, tmp_path: Path) -> None:
        file = tmp_path / "out.pb"
        result = run("store", "export", "--store", str(folder), "--output", str(file))
        assert result.exit_code == 0, result.output
        with open_database(folder / "pandaeval.db") as database:
            database.isolation_level = None
            held = [data for trace in stored_traces(database) for _, data in trace.parts]
        read = [each for each in Input(str(file)).requests() if isinstance(each, Request)]
        assert sorted(each.data for each in read) == sorted(map(bytes, held))
        assert len(read) == 8

    def test_export_of_one_trace_contains_only_this_trace(self, folder: Path, tmp_path: Path) -> None:
        with open_database(folder / "pandaeval.db") as database:
            database.isolation_level = None
            trace = next(stored_traces(database))
        file = tmp_path / "out.pb"
        export = ("store", "export", "--store", str(folder), "--output", str(file), "--trace")
        assert run(*export, trace.trace_id.hex()).exit_code == 0
        read = [each for each in Input(str(file)).requests() if isinstance(each, Request)]
        assert [(each.logs, each.data) for each in read] == trace.parts
        missing = run(*export, "f" * 32)
        assert missing.exit_code == 2
        assert "no spans of a trace ffff" in missing.output

    def test_export_leaves_out_damaged_traces(self, folder: Path, tmp_path: Path) -> None:
        change(folder, DAMAGE["chunks"])
        file = tmp_path / "out.pb"
        result = run("store", "export", "--store", str(folder), "--output", str(file))
        assert result.exit_code == 1
        assert "left out: trace " in result.output
        assert len([*Input(str(file)).requests()]) == 7

    def test_a_store_of_another_schema_version_is_rejected(self, folder: Path) -> None:
        change(folder, "PRAGMA user_version = 3")
        result = run("store", "verify", "--store", str(folder))
        assert result.exit_code == 2
        assert "schema version 3, but this program" in result.output


class TestDoctor:
    @pytest.fixture(autouse=True)
    def nobody(self, monkeypatch: pytest.MonkeyPatch) -> None:
        [port] = free_ports(1)
        monkeypatch.setenv("PANDAEVAL_SERVER__HEALTH", f"127.0.0.1:{port}")

    def wrong(self, folder: Path) -> list[str]:
        """Return the problem lines."""
        found = run("doctor", "--store", str(folder))
        lines = [line.removeprefix("wrong").strip() for line in found.stdout.splitlines() if line.startswith("wrong")]
        assert found.exit_code == bool(lines), found.output
        return lines

    def test_an_intact_store_has_no_problem(self, folder: Path) -> None:
        assert not self.wrong(folder)
        assert run("doctor", "--store", str(folder)).stdout.endswith("no problem found\n")

    def test_an_unreachable_sink_and_judge_are_reported(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        one, two = free_ports(2)
        monkeypatch.setenv("PANDAEVAL_EXPORTERS__OTLP__ENDPOINT", f"127.0.0.1:{one}")
        monkeypatch.setenv("PANDAEVAL_JUDGE__MODEL", "openai/m")
        monkeypatch.setenv("PANDAEVAL_JUDGE__API_BASE", f"http://127.0.0.1:{two}/v1")
        judge, sink = (line for line in self.wrong(folder) if "127.0.0.1" in line)
        assert f"exporters.otlp.endpoint (127.0.0.1:{one})" in sink
        assert f"judge.api_base (127.0.0.1:{two})" in judge

    def test_a_clock_that_was_set_back_is_reported(self, folder: Path) -> None:
        change(folder, "UPDATE meta SET value = json_set(value, '$.wall', 9e9) WHERE key = 'clock'")
        [wrong] = self.wrong(folder)
        assert wrong.startswith("clock:")

    def test_an_invalid_configuration_is_reported(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PANDAEVAL_CLOSE__QUIET", "soon")
        [wrong] = self.wrong(folder)
        assert wrong.startswith("configuration:")
        assert "PANDAEVAL_CLOSE__QUIET" in wrong

    def test_a_newer_schema_version_is_reported(self, folder: Path) -> None:
        change(folder, "PRAGMA user_version = 99")
        assert any("schema version 99" in line for line in self.wrong(folder))


@pytest.mark.parametrize("command", ["labels rates", "jobs retry", "traces list", "store verify"])
def test_a_file_that_is_no_database_is_a_one_line_error(command: str, tmp_path: Path) -> None:
    (tmp_path / "pandaeval.db").write_bytes(b"no database" * 1000)
    done = CliRunner().invoke(app, [*command.split(), "--store", str(tmp_path)])
    assert (done.exit_code, done.output.count("\n")) == (2, 1), done.output
    assert "file is not a database" in done.output
