"""Jaeger's real pages in a real Chromium."""

from __future__ import annotations

import json
from typing import Any

from support.chromium import Page

SERVICE = "pandaeval"


class JaegerPages:
    """``url``: address of the pages."""

    def __init__(self, page: Page, url: str) -> None:
        self._page, self._url = page, url

    def search(self, tags: str) -> None:
        form = f"{self._url}/search?service={SERVICE}&lookback=2h&limit=100"
        self._page.browse(form, "document.querySelector('input[name=tags]') !== null")
        self._page.wait("document.querySelector('.ResultItem') !== null")
        self._page.run("document.querySelector('input[name=tags]').focus()")
        self._page.press(*tags)
        self._page.wait(f"document.querySelector('input[name=tags]').value === {json.dumps(tags)}")
        self._page.click("button[type=submit]")
        self._page.wait("location.search.includes('tags=')")
        self._page.wait(
            "document.querySelector('.LoadingIndicator') === null && (document.querySelector('.ResultItem') !== null "
            "|| document.body.innerText.includes('No trace results'))"
        )

    def found(self) -> dict[str, dict[str, Any]]:
        """Return listed traces by ID: ``title``, and failing services in ``red``."""
        script = """[...document.querySelectorAll('.ResultItem')].map((item) => {
            const services = [...item.querySelectorAll('.ResultItem--serviceTag')];
            const red = services.filter((tag) => tag.querySelector('.ResultItem--errorIcon'));
            const said = {title: item.querySelector('.TraceName').innerText,
                          red: red.map((tag) => tag.innerText.split(' (')[0].trim())};
            return [item.querySelector('a').pathname.split('/').pop(), said];
        })"""
        return dict(self._page.run(script))

    def open(self, trace_id: str, span_id: str = "") -> None:
        address = f"{self._url}/trace/{trace_id}" + (f"?uiFind={span_id}" if span_id else "")
        self._page.browse(address, "document.querySelector('.span-row') !== null")
        if span_id:
            self._page.wait("document.querySelector('.detail-row') !== null")

    def rows(self) -> list[dict[str, Any]]:
        """Return visible spans: ``name``, and ``red`` for errors."""
        script = """[...document.querySelectorAll('.span-row')].map((row) => ({
            name: row.querySelector('.endpoint-name').innerText,
            red: row.querySelector('.SpanBarRow--errorIcon') !== null}))"""
        return list(self._page.run(script))

    def detail(self) -> str:
        """Return the visible text of the open span."""
        return self._page.text(".detail-row")
