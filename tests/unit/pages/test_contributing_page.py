"""CONTRIBUTING and the extension API page match the code."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from pandaeval_otel.dialects import Reading

_ROOT = Path(__file__).parents[3]
_CONTRIBUTING = (_ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
_IMPORTS = re.compile(r"^```python\n((?:from pandaeval_\w+\.[\w.]+ import .+\n)+)```$", re.MULTILINE)


def test_each_example_package_is_linked() -> None:
    packages = {path.parent for path in (_ROOT / "tests" / "plugins").glob("*/pyproject.toml")}
    assert len(packages) == 5
    linked = set(re.findall(r"\]\(tests/plugins/(\w+)\)", _CONTRIBUTING))
    assert linked == {path.name for path in packages}


def test_documented_internal_imports_give_the_same_objects_as_public_imports() -> None:
    """To move an example into a package, change only its imports."""
    blocks = _IMPORTS.findall(_CONTRIBUTING)
    for block, example in zip(blocks, ("metric/brevity.py", "dialect/skylark_dialect.py"), strict=True):
        imports = re.findall(
            r"^from pandaeval_\w+ import .+$", (_ROOT / "tests/plugins" / example).read_text(), re.MULTILINE
        )
        inside: dict[str, object] = {}
        outside: dict[str, object] = {}
        exec(block, inside)
        exec("\n".join(imports), outside)
        assert {**inside, "__builtins__": None} == {**outside, "__builtins__": None}


def test_the_table_of_reading_lists_all_fields_and_defaults() -> None:
    page = (_ROOT / "docs/internals/extension-api.md").read_text(encoding="utf-8")
    rows = page.partition("| field of `Reading` |")[2].partition("\n\n")[0]
    shown = re.findall(r"^\| `(\w+)` \| `(.+?)` \| .+ \|$", rows, re.MULTILINE)
    empty = Reading()
    assert shown == [(field.name, repr(getattr(empty, field.name)).replace("'", '"')) for field in fields(Reading)]
