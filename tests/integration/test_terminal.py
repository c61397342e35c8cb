"""No command prints terminal codes from untrusted text."""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest

from pandaeval_collector.base.runtime.logs import BoundedFormatter
from pandaeval_collector.store import Store
from support import forked
from support.commands import whole_app
from support.pty import Takes, commands, run_on_terminal

MARK = "ZQX"
LINK = "https://evil.example"
HOSTILE = (
    f"{MARK}\x1b]0;title\x07\x1b]52;c;cm0=\x07\x1b[2J\x1b[8m\x1b[1;31m\x9b31m\x9d0;t\x9c\x7f\x08\u202egpj\u2066\u200b\u200f\u061c"
    f"\ufeff\U000e0041\r[red]AFTER[/red][link={LINK}]x[/link]"
)
NAME = HOSTILE.replace("/", "|").replace("\x00", "")
"""The same as a file name."""

_OURS = re.compile(rb"\x1b\[(?:[0-9;]*m|\?25[lh]|[0-9]*[ABCDGK])")
"""Sequences of our own tables, colours and progress bars."""
_OBEYED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)
_MARKUP = re.compile(r"(?<!\[red\])AFTER|AFTER(?!\[[/|]\n?red[\]…])")


def _faults(shown: bytes) -> list[str]:
    found = [name for name in (b"\x1b[8m", b"\x1b[2J", b"\x1b]", b"\x9b", b"\xc2\x9b") if name in shown]
    text = _OURS.sub(b"", shown).decode()
    faults = [repr(name) for name in found] + [repr(each[0]) for each in _OBEYED.finditer(text)]
    return faults + [text[max(0, each.start() - 20) : each.end() + 20] for each in _MARKUP.finditer(text)]


def _attribute(key: str, value: Any) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value if isinstance(value, str) else json.dumps(value)}}


def _span(number: int, name: str, parent: int, **attributes: Any) -> dict[str, Any]:
    at = 1_700_000_000_000_000_000 + number * 1_000_000
    return {
        "traceId": "0af7651916cd43dd8448eb211c80319c",
        "spanId": f"{number:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "name": name,
        "startTimeUnixNano": str(at),
        "endTimeUnixNano": str(at + 50_000_000),
        "attributes": [_attribute(key.replace("__", "."), value) for key, value in attributes.items()],
        "status": {"code": 2, "message": HOSTILE},
    }


def _messages(role: str) -> list[dict[str, Any]]:
    return [{"role": role, "parts": [{"type": "text", "content": f"{HOSTILE} find my parcel and tell me where it is"}]}]


def _trace() -> dict[str, Any]:
    who = {"gen_ai__agent__name": HOSTILE, "gen_ai__conversation__id": HOSTILE}
    messages = {"gen_ai__input__messages": _messages("user"), "gen_ai__output__messages": _messages("assistant")}
    call = {"gen_ai__tool__call__arguments": {HOSTILE: HOSTILE}, "gen_ai__tool__call__result": HOSTILE}
    tool = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": HOSTILE, **call}
    spans = [
        _span(1, f"invoke_agent {HOSTILE}", 0, gen_ai__operation__name="invoke_agent", **who, **messages),
        _span(2, f"chat {HOSTILE}", 1, gen_ai__operation__name="chat", gen_ai__request__model=HOSTILE, **messages),
        *(_span(number, f"execute_tool {HOSTILE}", 1, **tool, **who) for number in (3, 4, 5, 6)),
    ]
    scope = {"scope": {"name": HOSTILE}, "spans": spans}
    return {
        "resourceSpans": [{"resource": {"attributes": [_attribute("service.name", HOSTILE)]}, "scopeSpans": [scope]}]
    }


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Write hostile trace, configuration and report."""
    folder = tmp_path_factory.mktemp("hostile")
    trace = folder / f"{NAME}.jsonl"
    trace.write_text(
        json.dumps(_trace(), ensure_ascii=False) + "\n{" + HOSTILE.replace("\r", " ") + "\n", encoding="utf-8"
    )
    config = folder / f"{NAME}.yaml"
    config.write_text(json.dumps({HOSTILE: 1, "close": {"quiet": HOSTILE, HOSTILE: HOSTILE}}), encoding="utf-8")
    data = folder / NAME
    good = folder / f"{NAME}-good.yaml"
    good.write_text(
        json.dumps({"store": {"path": str(data)}, "judge": {"only": {"service.name": [HOSTILE]}}}), encoding="utf-8"
    )
    data.mkdir()
    Store(data, "off").close()
    return {
        "trace": str(trace),
        "config": str(config),
        "good": str(good),
        "missing": str(folder / NAME / "none" / NAME),
        "text": HOSTILE,
    }


COMMANDS = dict(commands(whole_app()))
_BESIDE = {"--model": ("--metrics", "coherence")}
"""Options that avoid a slow model call."""
_NEEDED = {
    **dict.fromkeys([("runs", "start"), ("schedule", "add")], ("--metrics", "coherence")),
    ("store", "export"): ("--output", "-"),
}
"""Required options."""
_HOSTILE_OPTIONS = {"--config": ("config", "good", "missing"), "--trace": ("trace", "missing")}


def _invocations(path: tuple[str, ...], takes: Takes, files: dict[str, str]) -> Iterator[list[str]]:
    """Yield calls with hostile arguments and options."""
    if path == ("mcp",):
        return  # it would start a server
    for kind in ("trace", "config", "missing", "text") if takes.words else ():
        yield [*path, *[files[kind]] * takes.words]
    for name, kind in takes.options.items():
        before = [*path, *[files["trace"]] * (takes.words if name != "--trace" else 0)]
        before += _NEEDED.get(path, ()) if name != "--metrics" else ()
        for choice in get_args(kind) if get_origin(kind) is Literal else ():
            yield [*before, name, choice]
        for value in _HOSTILE_OPTIONS.get(name, ("missing", "text") if kind is Path else ("text",)):
            if path != ("collector",) or value != "good":  # it would run
                yield [*before, name, files[value], *_BESIDE.get(name, ())]


@pytest.mark.parametrize("name", [" ".join(path) for path in COMMANDS])
def test_no_command_prints_terminal_codes_of_untrusted_text(
    name: str, files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tuple(name.split())
    calls = list(_invocations(path, COMMANDS[path], files))
    shown = [run_on_terminal(*call) for call in calls]
    assert {str(call): found for call, each in zip(calls, shown, strict=True) if (found := _faults(each))} == {}
    if calls:
        assert any(MARK in each.decode() for each in shown), "the hostile text must be shown, escaped"


def test_hostile_text_is_shown_escaped(files: dict[str, str]) -> None:
    trace, good = files["trace"], files["good"]
    for call in (
        ("inspect", trace),
        ("inspect", trace, "--format", "json"),
        ("evaluate", trace),
        ("evaluate", trace, "--format", "json"),
        ("prompts", "--trace", trace),
        ("config", "show", "--config", good),
        ("config", "check", files["config"]),
    ):
        shown = run_on_terminal(*call)
        assert MARK in shown.decode(), call
        assert _faults(shown) == [], call
    assert r"\x1b]0;title" in run_on_terminal("inspect", trace).decode()


def test_json_on_a_terminal_has_the_values_of_piped_json(files: dict[str, str]) -> None:
    call = ("inspect", files["trace"], "--format", "json")
    piped = _piped(*call)
    assert HOSTILE in json.loads(piped.stdout)["input"]
    assert "\u202e" in piped.stdout, "piped output must keep all bytes"
    shown = run_on_terminal(*call).decode()
    line = next(line for line in _OURS.sub(b"", shown.encode()).decode().splitlines() if line.startswith("{"))
    assert json.loads(line) == json.loads(piped.stdout)


def test_a_report_contains_no_characters_that_hide_or_reorder_text(files: dict[str, str], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    run_on_terminal("evaluate", files["trace"], "--format", "html", "--output", str(page))
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r'<script type="application/octet-stream" id="[^"]+">([^<]+)</script>', text)
    data = [zlib.decompress(base64.b64decode(block)).decode() for block in blocks]
    assert any(MARK in each for each in data)
    assert [found for each in data for found in _obeyed_in(json.loads(each))] == []
    assert _OBEYED.findall(re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)) == []


def _obeyed_in(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield from (value[:80] for _ in _OBEYED.findall(value))
        case dict():
            for key, each in value.items():
                yield from _obeyed_in(key)
                yield from (f"{key}: {found}" for found in _obeyed_in(each))
        case list():
            for each in value:
                yield from _obeyed_in(each)


def test_untrusted_text_cannot_forge_a_log_line() -> None:
    record = logging.LogRecord("a", logging.INFO, "", 1, "said %s", (f"no\n2026-01-01 ERROR forged {HOSTILE}",), None)
    line = BoundedFormatter("%(levelname)s %(message)s").format(record)
    assert line.startswith(r"INFO said no\n2026-01-01 ERROR forged")
    assert "\n" not in line
    assert _faults(line.encode()) == []


def test_errors_in_pipes_contain_no_terminal_codes(files: dict[str, str]) -> None:
    for call in (("config", "check", files["config"]), ("inspect", files["missing"]), ("inspect", files["trace"])):
        errors = _piped(*call).stderr
        assert MARK in errors
        assert _faults(errors.encode()) == []


def _piped(*call: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a process, forked where possible."""
    if forked.is_wanted():
        return forked.run(call, os.environ, timeout=240)
    program = "import sys; from pandaeval_collector.cli import main; main()"
    return subprocess.run([sys.executable, "-c", program, *call], capture_output=True, text=True, timeout=240)
