"""``deploy/systemd``: valid, hardened, correct paths."""

from __future__ import annotations

import re
from pathlib import Path

from support.deploy import DEPLOY, ROOT, program, run

_UNIT = DEPLOY / "systemd" / "pandaeval-collector.service"
_TEXT = _UNIT.read_text()


def test_systemd_takes_it(tmp_path: Path) -> None:
    tried = tmp_path / _UNIT.name
    tried.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", _TEXT, flags=re.MULTILINE))
    assert run(program("systemd-analyze"), "verify", tried) == ""


def test_it_is_hardened() -> None:
    """systemd exposure, 0 to 10."""
    said = run(program("systemd-analyze"), "security", "--offline=true", "--no-pager", _UNIT)
    level = re.search(r"Overall exposure level for \S+ (\d+\.\d+)", said)
    assert level is not None
    assert float(level[1]) < 2


def test_files_of_the_repository_that_it_names_are_there() -> None:
    named = re.findall(r"^#   install .*?((?:collector|deploy)/\S+)", _TEXT, re.MULTILINE)
    assert len(named) == 2
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_a_stop_has_the_time_that_it_takes() -> None:
    assert int(re.findall(r"^TimeoutStopSec=(\d+)s$", _TEXT, re.MULTILINE)[0]) >= 45
