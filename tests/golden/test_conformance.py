"""Every recorded fact is read, except those in :mod:`tests.golden.conformance_deviations`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.golden.conformance import Checked, check
from tests.golden.conformance_deviations import EXCUSES, Excuse, excuse
from tests.golden.conformance_docs import described
from tests.golden.conformance_facts import FACTS
from tests.golden.conformance_truth import EMITTERS, OTHER_SCRIPTS, OWN, ROOTS, Capture, captures


def sets() -> Sequence[object]:
    """Return each set as pytest parameters."""
    found = []
    for kind, root in ROOTS.items():
        names = sorted(path.name for path in root.iterdir() if path.is_dir()) if root.is_dir() else [None]
        names = [name for name in names if name not in OTHER_SCRIPTS]
        here = () if root.is_dir() else (pytest.mark.skip(reason=f"no captures in {root.name} ({kind})"),)
        found += [pytest.param(root, name, id=f"{kind}-{name or 'none'}", marks=here) for name in names]
    return found


@cache
def _captures(root: Path) -> tuple[Capture, ...]:
    return tuple(captures(root))


@cache
def checked(root: Path, name: str) -> tuple[Checked, ...]:
    return tuple(check(capture) for capture in _captures(root) if capture.set == name)


@pytest.mark.parametrize(("root", "name"), sets())
def test_every_fact_without_an_excuse_is_read(root: Path, name: str) -> None:
    found = checked(root, name)
    assert found, "captures without a known truth"
    missed = [
        f"{one.capture.name}: {fact}: {text}"
        for one in found
        for fact, text in one.missed
        if excuse(name, one.capture.scenario, fact) is None
    ]
    assert missed == []


@pytest.mark.parametrize("excused", EXCUSES, ids=lambda one: f"{one.set}-{one.fact}")
def test_every_excuse_is_needed(excused: Excuse) -> None:
    roots = [root for root in ROOTS.values() if (root / excused.set).is_dir()]
    if not roots:
        pytest.skip("the captures are not here")
    found = [one for root in roots for one in checked(root, excused.set)]
    assert any(excused.covers(one.capture.set, one.capture.scenario, fact) for one in found for fact, _ in one.missed)


def test_every_fact_is_emitted_by_a_committed_capture() -> None:
    names = {capture.set for capture in _captures(OWN)}
    emitted = {fact for name in names for one in checked(OWN, name) for fact, v in one.verdicts.items() if v.emitted}
    assert emitted == set(FACTS)


def test_the_published_matrix_names_the_committed_versions() -> None:
    versions = json.loads((OWN / "VERSIONS.json").read_text())
    for capture in _captures(OWN):
        framework, telemetry = described(capture)
        named = re.findall(r"(?<![\w-])([a-z][\w-]*) (\d+(?:\.\w+)+)", f"{framework}, {telemetry}")
        assert named
        for package, version in named:
            assert versions[capture.set].get(package, version) == version, capture.set


def test_the_published_matrix_names_the_versions_of_every_emitter() -> None:
    versions = json.loads((EMITTERS / "VERSIONS.json").read_text())
    for capture in _captures(EMITTERS):
        named = re.findall(r"\d+(?:\.\w+)+", " ".join(described(capture)))
        assert named
        assert set(named) <= set(versions[capture.set].values()), capture.set
