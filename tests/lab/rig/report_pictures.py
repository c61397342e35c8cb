"""Creates the pictures of the HTML report in docs/pictures.

python tests/lab/rig/report_pictures.py     (from the root; needs a Chromium)
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]


def main() -> None:
    from pandaeval_collector.cli import app
    from support.chromium import Page, chromium

    program = chromium()
    if program is None:
        sys.exit("no Chromium found")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        app(["demo", "--report", str(report)], standalone_mode=False)
        with Page(program, Path(folder)) as page:
            page.resize(1280, 1010)
            page.open(report)
            page.picture(ROOT / "docs" / "pictures" / "report.png")
            page.resize(1280, 800)
            page.open(report, "#/traces?metric=trace.tool_loop&state=fail")
            page.click(".row.trace")
            page.wait("document.querySelector('.fall') !== null")
            page.picture(ROOT / "docs" / "pictures" / "report-trace.png")


if __name__ == "__main__":
    main()
