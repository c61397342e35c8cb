"""Locks match the projects' requirements."""

from __future__ import annotations

import re
import runpy
from collections import defaultdict
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_LOCKS = Path(__file__).parents[3] / "deploy/locks"
_PIN = re.compile(r"([\w.-]+)==([^\s;\\]+)")


@pytest.mark.parametrize("lock", ["collector", "judge", "ci"])
def test_every_requirement_is_met_by_a_pin_with_hashes(lock: str) -> None:
    text = (_LOCKS / f"{lock}.txt").read_text().replace("\\\n", "")
    pins = defaultdict(list)
    for line in text.splitlines():
        if match := _PIN.match(line):
            assert "--hash=sha256:" in line, line[:80]
            pins[canonicalize_name(match[1])].append(match[2])
    asked = map(Requirement, runpy.run_path(str(_LOCKS / "compile.py"))["requirements"](lock))
    unmet = [str(each) for each in asked if not any(map(each.specifier.contains, pins[canonicalize_name(each.name)]))]
    assert unmet == []
