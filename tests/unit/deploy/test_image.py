"""Dockerfiles: linted, pinned, consistent."""

from __future__ import annotations

import json
import re
import runpy
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pandaeval_collector.config import Config
from support.deploy import DEPLOY, ROOT, module, program, run

_DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
_APPLICATION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
_COLLECTOR = tomllib.loads((ROOT / "collector/pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("name", ["Dockerfile", "compose/agent/Dockerfile"])
def test_dockerfiles_pass_hadolint(name: str) -> None:
    run(program("hadolint"), DEPLOY / name)


@pytest.mark.parametrize("name", ["Dockerfile", "compose/agent/Dockerfile"])
def test_copied_files_exist_and_are_not_ignored(name: str) -> None:
    text = (DEPLOY / name).read_text()
    kept = [line[1:] for line in (DEPLOY / f"{name}.dockerignore").read_text().splitlines() if line.startswith("!")]
    for sources in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE):
        for source in sources.replace("${EXTRAS}", "collector").split():
            assert (ROOT / source).exists(), source
            assert any(Path(source).is_relative_to(kept_path) for kept_path in kept), f"{source} is ignored"


@pytest.mark.parametrize("name", ["Dockerfile", "compose/agent/Dockerfile"])
def test_both_images_use_the_same_pinned_python(name: str) -> None:
    (version,) = re.findall(r"^ARG PYTHON=(\S+)$", (DEPLOY / name).read_text(), re.MULTILINE)
    assert re.fullmatch(r"3\.\d+\.\d+-slim-\w+", version)
    assert version == re.findall(r"^ARG PYTHON=(\S+)$", _DOCKERFILE, re.MULTILINE)[0]


def test_the_lab_can_be_left_out() -> None:
    assert "ARG LAB=1\n" in _DOCKERFILE
    left_out = _DOCKERFILE.index('if [ "$LAB" = 0 ]; then rm -r collector/pandaeval_lab; fi')
    assert _DOCKERFILE.index("COPY collector/pandaeval_lab ") < left_out < _DOCKERFILE.index("pip wheel")


def test_the_image_has_an_unprivileged_user_a_health_check_and_a_volume() -> None:
    last = _DOCKERFILE.rpartition("\nFROM ")[2]
    assert re.search(r"^USER 10001:10001$", last, re.MULTILINE)
    assert re.search(r"^HEALTHCHECK .*\n +CMD .*4329/readyz", last, re.MULTILINE)
    assert re.search(r"^VOLUME /var/lib/pandaeval$", last, re.MULTILINE)


def test_exposed_ports_are_the_default_ports_of_the_collector() -> None:
    server = Config().server
    ports = [each.rpartition(":")[2] for each in (server.grpc, server.http, server.health)]
    assert f"EXPOSE {' '.join(ports)}\n" in _DOCKERFILE


@pytest.mark.parametrize("lock", ["collector", "judge", "ci", "build", "sbom"])
def test_locked_versions_meet_the_requirements_of_the_project(lock: str) -> None:
    """Fix: ``python deploy/locks/compile.py``."""
    text = (DEPLOY / "locks" / f"{lock}.txt").read_text()
    locked = {
        canonicalize_name(name): version for name, version in re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE)
    }
    assert text.count("==") <= text.count("--hash=sha256:") + text.count(" ; ") * 2
    for requirement in map(Requirement, runpy.run_path(str(DEPLOY / "locks/compile.py"))["requirements"](lock)):
        version = locked[canonicalize_name(requirement.name)]
        assert version in requirement.specifier, f"{requirement}: {version} is locked"


def test_the_software_inventory_lists_the_direct_dependencies(tmp_path: Path) -> None:
    command = re.findall(r"cyclonedx-py (environment .*) -o /sbom.cdx.json", _DOCKERFILE)[0].split()
    made = tmp_path / "sbom.cdx.json"
    run(*module("cyclonedx_py"), *command, "-o", made, sys.executable)
    inventory = json.loads(made.read_text())
    names = {canonicalize_name(component["name"]) for component in inventory["components"]}
    asked = [Requirement(text) for text in _APPLICATION["dependencies"] + _COLLECTOR["dependencies"]]
    assert {canonicalize_name(requirement.name) for requirement in asked} <= names


def test_the_image_installs_no_package_without_a_hash() -> None:
    taken = re.findall(r"\bpip(?: --python \S+)? install ([^\n&\\]*)", _DOCKERFILE)
    assert len(taken) == 4
    assert [each for each in taken if "--require-hashes" not in each and each.strip() != "--no-deps wheels/*.whl"] == []
