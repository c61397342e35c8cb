"""Discovery and checks of exporters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.section import Section
from pandaeval_collector.config import Config
from pandaeval_collector.exporters import Surroundings, found
from pandaeval_collector.exporters.found import Way, ways
from pandaeval_collector.exporters.jsonl import Jsonl, JsonlExporter
from pandaeval_otel.base.component_errors import ERRORS
from pandaeval_otel.base.plugins import NotUsableError

AROUND: Any = Surroundings(None, None, {})  # type: ignore[arg-type]


class Named(JsonlExporter):
    """An exporter of another package."""

    def __init__(self, name: str, source: str = "results") -> None:
        super().__init__(Path("x"))
        self.name, self.source = name, source


def test_built_in_exporters_are_found_with_their_settings() -> None:
    known = {way.name: way for way in ways()}
    assert {*known} == {"jsonl", "kafka", "otlp", "prometheus", "webhook"}
    assert known["jsonl"].settings is Jsonl
    assert known["prometheus"].make is None, "it is scraped, and sends nothing"
    for name, way in known.items():
        assert type(getattr(Config().exporters, name)) is way.settings


def test_exporters_of_another_package_are_used_if_all_are_valid() -> None:
    made = Way("lark", Section, lambda *_: [Named("lark"), Named("lark.logs", "logs")], "lark 1.0")
    assert [each.name for each in made.exporters(Section(), AROUND)] == ["lark", "lark.logs"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda *_: [Named("lark"), object()], "neither an Exporter nor a Repeating"),
        (lambda *_: [Named("jsonl")], "its exporter is called jsonl; call it lark or lark.something"),
        (lambda *_: [Named("lark", "metrics")], "its source is metrics, and none of logs, results, traces"),
        (lambda *_: 1 / 0, "ZeroDivisionError: division by zero"),
    ],
)
def test_an_invalid_exporter_of_another_package_is_logged_and_left_out(
    make: Any, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = ERRORS.counts()
    assert not [*Way("lark", Section, make, "lark 1.0").exporters(Section(), AROUND)]
    assert ERRORS.counts() - before == {("exporter", "lark"): 1}
    assert "exporters.lark is left out: lark 1.0 does not open: " in caplog.text
    assert message in caplog.text


def test_a_user_error_of_an_exporter_is_raised() -> None:
    def make(*_: object) -> Any:
        raise UserError("exporters.lark.path: is a folder")

    with pytest.raises(UserError, match="is a folder"):
        list(Way("lark", Section, make, "lark 1.0").exporters(Section(), AROUND))


def test_an_unusable_package_has_no_exporters() -> None:
    assert not [*Way("lark", None).exporters({"any": "thing"}, AROUND)]


class WithoutDefault(Section):
    """A section with a required key."""

    path: str


@pytest.mark.parametrize("settings", [dict, WithoutDefault, None])
def test_invalid_settings_classes_are_rejected(settings: Any) -> None:
    with pytest.raises((NotUsableError, ValueError)):
        found._check_settings(settings)
    found._check_settings(Jsonl)


@pytest.mark.parametrize("name", ["otlp", "scrape_results", "copy", "Lark", "a__b", "_a", "a-b", ""])
def test_invalid_or_reserved_exporter_names_are_rejected(name: str) -> None:
    with pytest.raises(NotUsableError):
        found._check_name(name, {"otlp"})
    found._check_name("lark_2", {"otlp"})
