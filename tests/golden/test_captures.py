"""Captures are valid, complete and without machine data."""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.golden.otlp_json import attribute, log_records, requests, resource_attributes, spans
from tests.lab.rig.demo_scenarios import DEMO
from tests.lab.rig.environment import emitters, frameworks
from tests.lab.rig.run import PIN, name_of
from tests.lab.rig.scenarios import HOSTED, SCENARIOS, Scenario
from tests.lab.rig.scrub import is_private
from tests.support.script import Reply

FOLDER = Path(__file__).parent / "captures"
CAPTURES = sorted(FOLDER.glob("*/*.otlp.jsonl"))
PACKED = FOLDER.with_name("emitters")
HOSTED_FOLDER = Path(__file__).parent / "hosted"
HOSTED_CAPTURES = sorted(HOSTED_FOLDER.glob("*/*.otlp.jsonl"))
DEMO_FOLDER = Path(__file__).resolve().parents[2] / "collector" / "pandaeval_lab" / "cli" / "_recordings"
PATHS = re.compile(
    r"(?<![\w.:/])/(?:root|home|Users|work|opt|usr|tmp|var|private|mnt|srv)/|file://|[A-Z]:\\\\+Users|\.pyenv"
)
HOST_KEYS = re.compile(r'"(?:host\.\w+|net\.host\.name|process\.\w+|thread\.name)"')


def texts() -> list[object]:
    """Return every recording as pytest parameters."""
    named = [
        (f"{path.parent.name}/{path.name.partition('.')[0]}", path.read_text())
        for path in [*CAPTURES, *HOSTED_CAPTURES]
    ]
    packed = [(f"{path.parent.name}/{path.name.partition('.')[0]}", unpacked(path)) for path in packed_captures()]
    return [pytest.param(text, id=name) for name, text in [*named, *packed, ("demo", demo_text())]]


def packed_captures() -> list[Path]:
    return sorted(PACKED.glob("*/*.otlp.jsonl.xz"))


def unpacked(path: Path) -> str:
    return lzma.decompress(path.read_bytes()).decode()


def demo_text() -> str:
    return lzma.decompress((DEMO_FOLDER / "sessions.otlp.jsonl.xz").read_bytes()).decode()


@pytest.mark.parametrize("text", texts())
def test_ids_are_valid_and_parents_exist(text: str) -> None:
    given = requests(text)
    found = spans(given)
    assert found
    known = {span.span_id for span in found}
    assert len(known) == len(found)
    for span in found:
        assert (len(span.trace_id), len(span.span_id)) == (16, 8)
        assert any(span.trace_id)
        assert any(span.span_id)
        assert span.parent_span_id == b"" or span.parent_span_id in known
        assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
    for record in log_records(given):
        assert record.span_id in known


@pytest.mark.parametrize("text", texts())
def test_captures_have_no_paths_or_attributes_of_the_machine(text: str) -> None:
    assert PATHS.findall(text) == []
    assert HOST_KEYS.findall(text) == []
    assert [a.key for a in resource_attributes(requests(text)) if is_private(a.key)] == []


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: f"{path.parent.name}/{path.name.partition('.')[0]}")
def test_capture_has_all_messages_and_tool_names_of_the_scenario(path: Path) -> None:
    text = path.read_text()
    assert path.stat().st_size < 150_000
    for exchange in SCENARIOS[path.name.partition(".")[0]].dialogue.exchanges:
        assert exchange.user in text
        for reply in exchange.replies:
            if isinstance(reply, Reply):
                assert reply.text in text
                assert all(call.name in text for call in reply.calls)


@pytest.mark.parametrize(
    ("file", "folder", "scenarios"),
    [("frameworks.toml", FOLDER, SCENARIOS), ("hosted.toml", HOSTED_FOLDER, HOSTED)],
    ids=["captures", "hosted"],
)
def test_every_set_has_its_captures_and_package_versions(
    file: str, folder: Path, scenarios: Mapping[str, Scenario]
) -> None:
    sets = frameworks(file)
    versions = json.loads((folder / "VERSIONS.json").read_text())
    paths = sorted(folder.glob("*/*.otlp.jsonl"))
    captured = {name: {p.name.partition(".")[0] for p in paths if p.parent.name == name} for name in sets}
    assert captured == {name: set(scenarios) - set(entry.skip) for name, entry in sets.items()}
    assert set(versions) == set(sets)
    for name, entry in sets.items():
        for requirement in entry.requirements:
            package, _, version = requirement.rpartition("@" if entry.on_node else "==")
            assert versions[name][package.partition("[")[0]] == version
    assert sum(path.stat().st_size for path in paths) < 4_000_000


def test_every_emitter_has_its_captures_versions_and_date() -> None:
    sets = emitters()
    versions = json.loads((PACKED / "VERSIONS.json").read_text())
    captured = {name: {p.name.partition(".")[0] for p in packed_captures() if p.parent.name == name} for name in sets}
    assert captured == {name: set(SCENARIOS) - set(entry.skip) for name, entry in sets.items()}
    for name, entry in sets.items():
        pins = {name_of(requirement): PIN.search(requirement) for requirement in entry.requirements}
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", versions[name].pop("day"))
        assert versions[name] == {key: pin and pin.group().lstrip("=@") for key, pin in pins.items()}
    assert sum(path.stat().st_size for path in packed_captures()) < 200_000


def test_the_demo_recording_has_the_expected_sessions() -> None:
    expected = json.loads((DEMO_FOLDER / "expected.json").read_text())
    assert expected == {
        "good": [session.name for session in DEMO if session.good],
        "bad": [session.name for session in DEMO if not session.good],
    }
    found = spans(requests(demo_text()))
    sessions = {attribute(span, "gen_ai.conversation.id") for span in found} - {None}
    assert sessions == {*expected["good"], *expected["bad"]}
    turns = sum(len(session.scenario.turns) for session in DEMO)
    assert len({span.trace_id for span in found}) == turns
    assert 15 <= turns <= 40
    assert (DEMO_FOLDER / "sessions.otlp.jsonl.xz").stat().st_size < 400_000
