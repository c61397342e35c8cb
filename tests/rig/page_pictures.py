"""Makes the pictures of the live page in docs/pictures: a collector that was sent recordings of real frameworks.

python tests/rig/page_pictures.py [FOLDER]     (from the root; needs a Chromium)
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]
SCENARIOS = ("good_session", "good", "tool_loop", "crashed", "repeated_answer", "wrong_tool", "off_topic", "tool_error")


def main() -> None:
    from support.chromium import Page, chromium
    from support.collector import CollectorProcess
    from support.judged_files import send
    from support.recent import recent
    from support.ungrounded import booking, post

    program = chromium()
    if program is None:
        sys.exit("no Chromium found")
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures"
    captures = ROOT / "tests" / "golden" / "captures"
    files = [file for name in SCENARIOS for file in sorted(captures.glob(f"*/{name}.otlp.jsonl"))[:4]]
    links = {"PANDAEVAL_UI__LINKS": '{"Jaeger": "http://localhost:16686/trace/{trace_id}"}'}
    with tempfile.TemporaryDirectory() as name, CollectorProcess(Path(name) / "run", links) as running:
        running.start()
        send(running, recent(files, Path(name) / "recent"))
        post(running.http, booking())
        running.until(lambda: "table-for-four" in {said["session_id"] for said in running.results()}, "done with all")
        running.until(running.at_rest, "at rest")
        with Page(program, Path(name)) as page:
            _pictures(page, running.http, out)
            assert not page.complaints


def _pictures(page: object, http: str, out: Path) -> None:
    from support.chromium import Page

    assert isinstance(page, Page)
    page.resize(1280, 1000)
    page.visit(f"{http}/#/")
    page.picture(out / "page.png")
    page.resize(390, 1000)
    page.picture(out / "page-phone.png")
    page.resize(1280, 1000)
    page.visit(f"{http}/#/traces?metric=trace.grounding&failed=1")
    page.click(".row.trace")
    page.wait("document.querySelector('.fall') !== null")
    page.click(".result.fail .link")
    page.wait("document.querySelector('.panel') !== null")
    page.run("scrollTo(0, 0)")
    page.picture(out / "page-trace.png")


if __name__ == "__main__":
    main()
