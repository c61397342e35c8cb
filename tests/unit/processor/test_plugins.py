"""Plugins by entry point: found, checked, skipped if broken."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pandaeval_otel.base import plugins
from pandaeval_otel.base.plugins import NotUsableError, Plugin, installed
from pandaeval_otel.dialects import Reading, _reading as found_module
from pandaeval_otel.dialects._reading import Foreign, _check
from pandaeval_otel.model import Kind, Message
from pandaeval_otel.model.raw import RawSpan

Install = Callable[[str, str, str], None]
GROUP = "pandaeval.tested"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a package with this module and entry point."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def lay(name: str, text: str, value: str = "") -> None:
        module = f"pandaeval_tested_{name.replace('-', '_')}"
        monkeypatch.delitem(sys.modules, module, raising=False)
        (tmp_path / f"{module}.py").write_text(text)
        about = tmp_path / f"{name.replace('-', '_')}-1.2.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        (about / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {value or module}\n")
        plugins._all.cache_clear()

    yield lay
    plugins._all.cache_clear()


def fine(plugin: Plugin) -> None:
    """Accept everything."""


def test_plugins_are_found_in_the_order_of_their_names(install: Install) -> None:
    install("second", "THING = 2", "")
    install("first", "THING = 1", "")
    found = installed(GROUP, "THING", fine).found
    assert [(each.name, each.origin, each.value) for each in found] == [
        ("first", "first 1.2", 1),
        ("second", "second 1.2", 2),
    ]


@pytest.mark.parametrize(
    ("text", "value", "why"),
    [
        ("1 / 0", "", r"ZeroDivisionError: division by zero (FILE:1)"),
        ("import sys\nsys.exit()", "", "SystemExit: "),
        ("x = 1", "", "its module pandaeval_tested_odd_one holds no THING"),
        ("THING = 1", "json:loads", "it names json:loads, and has to name a module: json"),
        ("raise ValueError('a\\nb')", "", r"ValueError: a\nb"),
        ("THING = 'refused'", "", "not this one"),
    ],
)
def test_an_unusable_plugin_is_skipped_and_logged_with_a_fix(
    install: Install, caplog: pytest.LogCaptureFixture, tmp_path: Path, text: str, value: str, why: str
) -> None:
    def check(plugin: Plugin) -> None:
        if plugin.value == "refused":
            raise NotUsableError("not this one")

    install("odd-one", text, value)
    install("good", "THING = 1", "")
    with caplog.at_level(logging.ERROR):
        found = installed(GROUP, "THING", check)
    assert [each.name for each in found.found] == ["good"]
    assert found.lost == ("odd-one",)
    [message] = [record.getMessage() for record in caplog.records]
    why = why.replace("FILE", str(tmp_path / "pandaeval_tested_odd_one.py"))
    assert message.startswith(f"{GROUP}: odd-one of odd-one 1.2 is left out: {why}")
    assert message.endswith("; update the package, or remove it (pip uninstall odd-one)")


class Thrush:
    """A third-party dialect."""

    name = "thrush"
    priority = 60
    roots = frozenset({"thrush"})
    scopes: tuple[str, ...] = ()
    names = ("thrush ",)
    gives: Any = None

    def read(self, span: RawSpan, logs: object) -> Any:
        return self.gives


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": "gen_ai"}, "another dialect is called 'gen_ai'"),
        ({"name": ""}, "or that is no name"),
        ({"priority": "high"}, "no whole number"),
        ({"roots": {"thrush"}}, "roots are no frozenset"),
        ({"content_switch": ("thrush", "set it")}, "content_switch is no mapping"),
        ({"scopes": "thrush"}, "scopes are no tuple"),
        ({"names": ("",)}, "names are no tuple"),
    ],
)
def test_an_invalid_dialect_is_refused(changed: dict[str, Any], message: str) -> None:
    _check(Thrush(), {"gen_ai"})
    wrong = type("Wrong", (Thrush,), changed)()
    with pytest.raises(NotUsableError, match=message):
        _check(wrong, {"gen_ai"})
    with pytest.raises(NotUsableError, match="lacks one of name"):
        _check(object(), set())


@pytest.mark.parametrize(
    "gives",
    [{"kind": "llm"}, Reading(output=({"role": "user"},))],  # type: ignore[arg-type]
)
def test_an_invalid_reading_is_an_error_that_names_the_dialect(gives: object) -> None:
    dialect = Thrush()
    dialect.gives = gives
    with pytest.raises(TypeError, match="thrush"):
        Foreign(dialect).read(RawSpan("a" * 32, "b" * 16), ())


def test_a_valid_reading_is_returned_unchanged() -> None:
    dialect = Thrush()
    dialect.gives = Reading(kind=Kind.LLM, input=(Message("user"),))
    assert Foreign(dialect).read(RawSpan("a" * 32, "b" * 16), ()) is dialect.gives
    dialect.gives = None
    assert Foreign(dialect).read(RawSpan("a" * 32, "b" * 16), ()) is None


def test_every_field_of_a_reading_is_checked() -> None:
    assert {*found_module.Foreign._types} == {*Reading.__dataclass_fields__}
