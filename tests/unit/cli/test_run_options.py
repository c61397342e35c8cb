"""Run options become a request or an error."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from typer.testing import CliRunner

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli import app
from pandaeval_collector.cli._run_options import RunOptions, filtered
from pandaeval_collector.show.api.run_shapes import RunBody
from pandaeval_collector.store.listed import Wanted

PLAIN = RunOptions(metrics="tool_loop, coherence")


@filtered()
def _given(filters: dict[str, Any]) -> dict[str, Any]:
    return filters


def test_omitted_options_set_no_filter() -> None:
    body = RunBody(**PLAIN.body({}))
    assert body.metrics == ["tool_loop", "coherence"]
    assert body.filters.wanted().of_unit() == Wanted()


def test_times_are_absolute_or_relative() -> None:
    asked = {"since": "7d", "until": "2026-03-01T12:00:00+01:00", "service": "shop", "failed": False}
    wanted = RunBody(**PLAIN.body(_given(**asked))).filters.wanted()
    assert wanted.since_ms is not None
    ago = datetime.now(UTC) - datetime.fromtimestamp(wanted.since_ms / 1000, UTC)
    assert abs(ago - timedelta(days=7)) < timedelta(minutes=5)
    assert wanted.until_ms == int(datetime(2026, 3, 1, 11, tzinfo=UTC).timestamp() * 1000)
    assert (wanted.service, wanted.failed) == ("shop", False)


@pytest.mark.parametrize("filters", [{"since": "yesterday"}, {"until": "soon"}])
def test_invalid_times_are_rejected(filters: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        _given(**filters)


def test_the_error_names_the_address_if_no_collector_runs() -> None:
    outcome = CliRunner().invoke(app, ["runs", "list", "--url", "http://127.0.0.1:9"])
    assert outcome.exit_code == 2
    assert "http://127.0.0.1:9" in outcome.output


def test_an_interrupt_ends_the_wait_but_not_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("pandaeval_collector.cli._run_place.ApiClient.get", interrupted)
    outcome = CliRunner().invoke(app, ["runs", "watch", "0a1b"])
    assert outcome.exit_code == 130
    assert "run 0a1b continues" in outcome.output
    assert "runs cancel 0a1b" in outcome.output
