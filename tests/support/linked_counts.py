"""Walks the pages of a collector, and compares each number of a link with the rows of its list."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from support.chromium import Page

PAGES = ("", "failures", "sessions", "traces", "agents", "comparison", "runs", "questions", "trust")
_LINKS = """(() => {
    const places = { incident: ".times b", unit: ".traces .muted", part: ".times small", "agent-row": ".name small" };
    const counted = (link) => Object.entries(places).find(([name]) => link.classList.contains(name));
    const about = document.querySelector("main .about");
    const isOfPage = (link) => link.hash.startsWith("#/") && !link.closest("nav[aria-label=Window]");
    return [...document.querySelectorAll("main a")].filter(isOfPage).map((link) => {
        const place = counted(link), inner = place && link.querySelector(place[1]);
        const isAll = /^all (runs|sessions)$/.test(link.innerText.trim());
        const text = isAll && about ? about.innerText : (inner || link).innerText;
        return [link.hash, place ? place[0] : link.className, text.trim()];
    });
})()"""
_ALL = """(async () => {
    const rows = () => document.querySelectorAll("main .rows > *, main .incident, main .example").length;
    const isMore = (each) => !each.hidden && /^(Show \\d|Load more)/.test(each.textContent);
    for (let more; (more = [...document.querySelectorAll("main button.more")].find(isMore));) {
        const before = rows();
        more.click();
        for (let tries = 0; rows() === before && tries < 500; tries += 1) {
            await new Promise((done) => setTimeout(done, 20));
        }
    }
})()"""
_SHARE = re.compile(r"(\d+) of \d+$")
_COUNT = re.compile(
    r"(\d+) (?:unclear|disputed|passed|failed|with(?:out)? findings|found|runs?|sessions?|traces?|incidents?|resolved"
    r"|muted|dismissed)\b"
    r"|^(?:\w+ )?(\d+)$"
)
_SAME = re.compile(r"×(\d+)")


@dataclass(frozen=True, slots=True)
class Link:
    """A link on a page. ``count``: the number that it shows, if any."""

    page: str
    address: str
    text: str
    count: int | None


def walked(page: Page, collector: str, view: str = "window=all") -> list[Link]:
    """Return the links of all pages, of all incidents and of each agent's overview."""
    page.visit(f"{collector}/#/?{view}")
    waiting, seen, found = [f"#/{name}?{view}" for name in PAGES], set[str](), list[Link]()
    while waiting:
        address = waiting.pop()
        if address in seen:
            continue
        seen.add(address)
        _open(page, address)
        links = [*_links(page, address)]
        found += links
        waiting += [link.address for link in links if _is_page(link.address)]
    return found


def differences(page: Page, links: list[Link]) -> list[str]:
    """Return each link whose number differs from the number of rows."""
    rows: dict[str, int] = {}
    wrong = []
    for link in links:
        if link.count is None:
            continue
        if link.address not in rows:
            rows[link.address] = _rows(page, link.address)
            wrong += _heading(page, link.address, rows[link.address])
        if rows[link.address] != link.count:
            wrong.append(f"{link.page}: {link.text!r} leads to {rows[link.address]} rows of {link.address}")
    return wrong


def _heading(page: Page, address: str, rows: int) -> Iterator[str]:
    heading = page.text("main .top") if _split(address)[0] == "traces" else ""
    counted = re.search(r"^([\d,]+) (?:traces?|of [\d,]+ traces?)\b", heading, re.MULTILINE)
    if counted and int(counted[1].replace(",", "")) != rows:
        yield f"{address} has {rows} rows, and shows: {counted[0]}"


def _links(page: Page, address: str) -> Iterator[Link]:
    found: list[list[str]] = page.run(_LINKS)
    for to, kind, text in found:
        yield Link(address, to, text, _count(to, kind, text.replace(",", "")))


def _count(address: str, kind: str, text: str) -> int | None:
    if kind == "incident":
        return int(text)
    path, _ = _split(address)
    is_list = path in ("", "sessions", "traces", "failures") or (path.startswith("session/") and kind == "unit")
    if not is_list:
        return None
    found = _SHARE.search(text) or _COUNT.search(text)
    if found is not None:
        return int(next(filter(None, found.groups())))
    assert not re.search(r"\d", text) or "%" in text or path == "", f"unknown number of a link: {text!r} to {address}"
    return None


def _is_page(address: str) -> bool:
    path, query = _split(address)
    return "group" in query or (path == "" and "agent" in query)


def _split(address: str) -> tuple[str, dict[str, Any]]:
    path, _, query = address.removeprefix("#/").partition("?")
    return path, parse_qs(query)


def _open(page: Page, address: str) -> None:
    page.go(address)
    page.run(_ALL)


def _rows(page: Page, address: str) -> int:
    path, query = _split(address)
    if path == "":  # the overview lists sessions but counts runs
        address = address.replace("#/?", "#/traces?")
    _open(page, address)
    if "group" in query:
        same = [int(_SAME.search(text)[1]) for text in page.texts(".example .same")]  # type: ignore[index]
        shown = page.count(".example") + sum(same) - len(same)
        newest = re.search(r"newest (\d+) of ([\d,]+)", page.text())
        return int(newest[2].replace(",", "")) if newest and int(newest[1]) == shown else shown
    if path == "failures":
        return page.count(".incident")
    return page.count(".row.trace" if path.startswith("session/") else ".rows > *")
