"""Login to the live page with a token."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from support.chromium import Page, chromium
from support.collector import CollectorProcess

PROGRAM = chromium()


@pytest.mark.slow
@pytest.mark.skipif(PROGRAM is None, reason="no Chromium here (Debian: apt-get install chromium)")
def test_the_page_needs_the_token_as_password(tmp_path: Path) -> None:
    settings = {"PANDAEVAL_SERVER__TOKEN_ENV": "THE_TOKEN", "THE_TOKEN": "open-sesame"}
    assert PROGRAM is not None
    with CollectorProcess(tmp_path / "collector", settings) as running, Page(PROGRAM, tmp_path) as page:
        running.start()
        assert httpx.get(f"{running.http}/", timeout=60).status_code == 401
        page.visit(f"http://me:open-sesame@127.0.0.1:{running.http_port}/")
        assert "No scores yet" in page.text()
        assert "Send the first trace" in page.text()
        assert page.complaints == []
