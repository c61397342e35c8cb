"""The examples of CONTRIBUTING are the packages that are tested, word for word; its table of fields has all of them."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from pandaeval_otel.dialects import Reading

_ROOT = Path(__file__).parents[3]
_IMPORTS = re.compile(r"^```python\n((?:from pandaeval_\w+\.[\w.]+ import .+\n)+)```$", re.MULTILINE)
_BLOCKS = re.compile(r"^`(tests/plugins/[\w./]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_examples_are_the_tested_packages() -> None:
    shown = dict(_BLOCKS.findall((_ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    files = [path for path in (_ROOT / "tests" / "plugins").glob("*/*") if path.is_file()]
    assert len(files) == 10
    assert shown == {path.relative_to(_ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files}


def test_imports_in_the_house_are_those_of_the_packages_by_other_ways() -> None:
    """So an example becomes a file of the house when its imports are exchanged."""
    blocks = _IMPORTS.findall((_ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    for block, example in zip(blocks, ("metric/brevity.py", "dialect/skylark_dialect.py"), strict=True):
        imports = re.findall(
            r"^from pandaeval_\w+ import .+$", (_ROOT / "tests/plugins" / example).read_text(), re.MULTILINE
        )
        inside: dict[str, object] = {}
        outside: dict[str, object] = {}
        exec(block, inside)
        exec("\n".join(imports), outside)
        assert {**inside, "__builtins__": None} == {**outside, "__builtins__": None}


def test_the_table_of_a_reading_has_its_fields_and_what_they_are_when_left_out() -> None:
    page = (_ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = page.partition("| field of `Reading` |")[2].partition("\n\n")[0]
    shown = re.findall(r"^\| `(\w+)` \| `(.+?)` \| .+ \|$", rows, re.MULTILINE)
    empty = Reading()
    assert shown == [(field.name, repr(getattr(empty, field.name)).replace("'", '"')) for field in fields(Reading)]
