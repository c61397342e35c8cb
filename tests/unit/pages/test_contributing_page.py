"""The examples of CONTRIBUTING are the packages that are tested, whole and word for word."""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path(__file__).parents[3]
_BLOCKS = re.compile(r"^`(tests/plugins/[\w./]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_examples_are_the_tested_packages() -> None:
    shown = dict(_BLOCKS.findall((_ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    files = [path for path in (_ROOT / "tests" / "plugins").glob("*/*") if path.is_file()]
    assert len(files) == 6
    assert shown == {path.relative_to(_ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files}
