"""Creates the pictures of Jaeger's pages in docs/pictures.

python tests/lab/rig/jaeger_pictures.py [FOLDER]     (from the root; needs a Chromium, Jaeger, its pages and litellm)
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]


def main() -> None:
    from support.chromium import Page, chromium
    from support.jaeger import pages
    from support.jaeger_house import jaeger_house
    from support.jaeger_pages import JaegerPages

    program = chromium()
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shown = pages(folder / "pages")
        if program is None or shown is None:
            sys.exit("no Chromium found, or no pages of Jaeger")
        with jaeger_house(folder / "house", shown) as house, Page(program, folder, 1100, 900) as page:
            jaeger = JaegerPages(page, house.url)
            jaeger.search("pandaeval.verdict=fail")
            page.picture(out / "jaeger-search.png")
            failed = house.trace_of("tool_loop")
            jaeger.open(failed["trace_id"], house.inline_span(failed["trace_id"]))
            page.run("window.since = Date.now()")  # the page scrolls to the found span by itself, but too far
            page.wait("Date.now() - window.since > 1500")
            page.run("(window.scrollTo(0, 0), document.scrollingElement.scrollTop)")
            page.wait("document.querySelector('.detail-row') !== null")
            page.picture(out / "jaeger-trace.png")


if __name__ == "__main__":
    main()
