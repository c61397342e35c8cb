"""Creates the pictures of the live page in docs/pictures: wide, phone, light, dark, as WebP.

python tests/lab/rig/page_pictures.py [FOLDER]     (from the root; needs a Chromium)
"""

from __future__ import annotations

import json
import lzma
import sys
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]
SCENARIOS = ("good_session", "good", "tool_loop", "crashed", "repeated_answer", "wrong_tool", "off_topic", "tool_error")
PAGES = ("", "failures", "sessions", "traces", "agents", "runs", "trust", "session/made-up-price")
_A_DAY = 23 * 60
"""Time span of the recordings in minutes."""


def main() -> None:
    from support.chromium import Page, chromium
    from support.collector import CollectorProcess
    from support.incident_mix import mix
    from support.judged_files import send
    from support.recent import recent
    from support.ungrounded import booking, post, silent

    program = chromium()
    if program is None:
        sys.exit("no Chromium found")
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures"
    (out / "pages").mkdir(parents=True, exist_ok=True)
    captures = ROOT / "tests" / "golden" / "captures"
    recorded = [file for name in SCENARIOS for file in sorted(captures.glob(f"*/{name}.otlp.jsonl"))[:4]]
    settings = {"PANDAEVAL_UI__LINKS": '{"Jaeger": "http://localhost:16686/trace/{trace_id}"}', **_judge()}
    with tempfile.TemporaryDirectory() as name, CollectorProcess(Path(name) / "run", settings) as running:
        running.start()
        with Page(program, Path(name)) as page:
            _shot(page, f"{running.http}/#/", out / "pages", "nothing-yet")
            send(running, recent([*recorded, *_demo(Path(name))], Path(name) / "recent", _A_DAY))
            for request in (mix(12), booking(), silent()):
                post(running.http, request)
            running.until(lambda: {"table-for-four", "loop", "made-up-price"} <= _sessions(running), "done with all")
            running.until(lambda: len(_verdicts(running)) == 10, "judged")
            running.until(running.at_rest, "at rest")
            lie, loop, made_up = (_trace_of(running, session) for session in ("send_reminder", "loop", "made-up-price"))
            [trace] = {
                result["metadata"]["blame"]["trace_id"] for result in made_up if result["metric"] == "correctness"
            }
            [group] = {
                result["metadata"]["failure_group"]["id"] for result in lie if result["label"] == "false_success"
            }
            named = {address.partition("/")[0] or "first": address for address in (*PAGES, f"trace/{trace}")}
            named |= {"incident": f"failures?group={group}"}
            named |= {"compare": f"compare?a={trace}&b={loop[0]['trace_id']}"}
            for name, address in named.items():
                _shot(page, f"{running.http}/#/{address}", out / "pages", name)
            _for_reading(page, running.http, trace, out)
            assert not page.complaints


def _judge() -> Mapping[str, str]:
    """Return the settings of the recorded judge."""
    from pandaeval_lab.cli._recordings import recorded_judge

    held = recorded_judge()
    return {
        "PANDAEVAL_JUDGE__MODEL": str(held["judge.model"]),
        "PANDAEVAL_JUDGE__API_BASE": str(held["judge.api_base"]),
        "PANDAEVAL_JUDGE__DELAY": "0s",
        "PANDAEVAL_JUDGE__ONLY": '{"deployment.environment.name": ["demo"]}',
        "PANDAEVAL_METRICS__ENABLED": json.dumps(held["metrics.enabled"]),
    }


def _demo(folder: Path) -> list[Path]:
    """Return the demo's sessions in their own environment."""
    packed = files("pandaeval_lab.cli._recordings").joinpath("sessions.otlp.jsonl.xz").read_bytes()
    lines = lzma.decompress(packed).decode().replace('"staging"', '"demo"').splitlines()
    parts = {folder / "day.otlp.jsonl": lines[:-4], folder / "next-day.otlp.jsonl": lines[-4:]}
    for file, part in parts.items():
        file.write_text("\n".join(part), "utf-8")
    return [*parts]


def _sessions(running: object) -> set[str | None]:
    return {result["session_id"] for result in running.results()}  # type: ignore[attr-defined]


def _verdicts(running: object) -> set[str | None]:
    return {result["session_id"] for result in running.results() if result["metric"] == "correctness"}  # type: ignore[attr-defined]


def _trace_of(running: object, session: str) -> list[dict[str, object]]:
    return [result for result in running.results() if result["session_id"] == session and result["trace_id"]]  # type: ignore[attr-defined]


def _shot(page: object, address: str, out: Path, name: str) -> None:
    from support.chromium import Page

    assert isinstance(page, Page)
    for width, height in ((1280, 1300), (390, 1300)):
        page.resize(width, height)
        for dark in (False, True):
            page.dark(dark)
            page.visit(address)
            page.picture(out / f"{name}-{width}-{'dark' if dark else 'light'}.webp")
            assert page.run("document.documentElement.scrollWidth") <= width, f"{name} scrolls sideways at {width}"
    page.dark(False)


def _for_reading(page: object, http: str, trace: str, out: Path) -> None:
    from support.chromium import Page

    assert isinstance(page, Page)
    page.resize(1280, 1000)
    page.visit(f"{http}/#/")
    page.picture(out / "page.png")
    page.resize(390, 1000)
    page.visit(f"{http}/#/")
    page.picture(out / "page-phone.png")
    page.resize(1280, 1000)
    page.visit(f"{http}/#/trace/{trace}")
    page.picture(out / "page-trace.png")


if __name__ == "__main__":
    main()
