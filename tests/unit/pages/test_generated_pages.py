"""Generated pages are current."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support import api_page, cli_page, config_page, metrics_page, own_metrics, upgrade_page

_GENERATED: dict[Path, Callable[[], str]] = {
    api_page.PAGE: api_page.reference_page,
    cli_page.PAGE: cli_page.reference_page,
    config_page.PAGE: config_page.reference_page,
    upgrade_page.PAGE: upgrade_page.reference_page,
    metrics_page.PAGE: metrics_page.reference_page,
    metrics_page.QUALITY: metrics_page.quality_page,
    own_metrics.PAGE: lambda: own_metrics.written(own_metrics.PAGE.read_text(encoding="utf-8")),
}


@pytest.mark.parametrize("page", _GENERATED, ids=lambda page: page.name)
def test_a_page_is_up_to_date(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == _GENERATED[page](), "run the generator that the page names"
