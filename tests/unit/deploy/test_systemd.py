"""``deploy/systemd``: valid, hardened, correct paths."""

from __future__ import annotations

import re
from pathlib import Path

from support.deploy import DEPLOY, ROOT, program, run

_UNIT = DEPLOY / "systemd" / "pandaeval-collector.service"
_TEXT = _UNIT.read_text()


def test_the_unit_passes_systemd_analyze_verify(tmp_path: Path) -> None:
    tried = tmp_path / _UNIT.name
    tried.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", _TEXT, flags=re.MULTILINE))
    assert run(program("systemd-analyze"), "verify", tried) == ""


def test_the_unit_has_an_exposure_level_below_2() -> None:
    """The exposure level of systemd goes from 0 (safe) to 10."""
    output = run(program("systemd-analyze"), "security", "--offline=true", "--no-pager", _UNIT)
    level = re.search(r"Overall exposure level for \S+ (\d+\.\d+)", output)
    assert level is not None
    assert float(level[1]) < 2


def test_repository_files_named_in_the_unit_exist() -> None:
    named = re.findall(r"^#   install .*?((?:collector|deploy)/\S+)", _TEXT, re.MULTILINE)
    assert len(named) == 2
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_timeout_is_long_enough_for_a_stop() -> None:
    assert int(re.findall(r"^TimeoutStopSec=(\d+)s$", _TEXT, re.MULTILINE)[0]) >= 45
