"""Hostile text on terminals and in configuration files."""

from __future__ import annotations

import itertools
import json
import os
import pty
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from support.hostile import requests
from support.senders import to_json

_CLI = "import sys; from pandaeval_collector.cli import main; main()"
HOSTILE = (
    "\x1b]0;owned\x07 \x1b]52;c;b3duZWQ=\x07 \x1b[2J\x1b[H \x9b2J \x1b]8;;http://x\x07link\x1b]8;;\x07 \x1bc "
    "\u202egnp.exe\u202c \u2066x\u2069 \r\x08\x7f [red]loud[/red] [link=http://x]y[/link] \u200b\ufeff \x85 \u2028"
)
# Codes that rich writes: colours, and cursor moves of a progress bar.
_OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[[0-9]*[AKGJ]|\r\n|\r|\n|\t")
_ALIEN = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def on_a_terminal(folder: Path, scale: int) -> Iterator[str]:
    file = hostile_file(folder)
    for arguments in (
        ("inspect", file),
        ("inspect", file, "--format", "json"),
        ("evaluate", file),
        ("evaluate", file, "--format", "json"),
        ("evaluate", file, "--format", "junit"),
        ("prompts", "confidence", "--trace", file),
        ("inspect", folder / "no\x1b[2Jsuch\u202efile"),
        ("evaluate", folder / "no\x1b[2Jsuch\u202efile"),
        ("metrics", "no\x1b[2Jsuch\u202emetric"),
    ):
        shown = on_terminal([str(each) for each in arguments])
        if found := _ALIEN.search(_OURS.sub("", shown)):
            yield f"{arguments[0]} {arguments[1:]!r} writes {found[0]!r} to the terminal"


def hostile_file(folder: Path) -> Path:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest.FromString(requests.one_span(name=HOSTILE))
    span = request.resource_spans[0].scope_spans[0].spans[0]
    span.status.code, span.status.message = 2, HOSTILE
    for pair in span.attributes:
        if pair.key == "gen_ai.agent.name":
            pair.value.string_value = HOSTILE
        elif pair.key.endswith("messages"):
            role = "user" if "input" in pair.key else "assistant"
            parts = [
                {"type": "text", "content": HOSTILE},
                {"type": "tool_call", "id": "1", "name": HOSTILE, "arguments": {HOSTILE: HOSTILE}},
            ]
            pair.value.string_value = json.dumps([{"role": role, "parts": parts[: 1 if role == "user" else 2]}])
    requests.say(span, "gen_ai.conversation.id", HOSTILE)
    request.resource_spans[0].resource.attributes[0].value.string_value = HOSTILE
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "hostile.jsonl"
    file.write_text(json.dumps(to_json(request)) + "\n")
    return file


def on_terminal(arguments: Sequence[str]) -> str:
    here, there = pty.openpty()
    path = os.pathsep.join(entry for entry in sys.path if entry)
    outside = {key: value for key, value in os.environ.items() if not key.startswith("PANDAEVAL")}
    command = subprocess.Popen(
        [sys.executable, "-c", _CLI, *arguments],
        env=outside | {"PYTHONPATH": path, "TERM": "xterm-256color", "COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        stdout=there,
        stderr=there,
    )
    os.close(there)
    found = bytearray()
    while True:
        try:
            piece = os.read(here, 65536)
        except OSError:  # Linux raises this after the last writer has closed
            break
        if not piece:
            break
        found += piece
    os.close(here)
    command.wait()
    return found.decode(errors="replace")


def growing(folder: Path, scale: int) -> Iterator[str]:
    """Check YAML that expands, nests deeply or misleads."""
    names = "abcdefghijklmnopqrstuvwxyz"[: 9 + scale]
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in itertools.pairwise(names)
    )
    texts = {
        "an alias bomb": bomb,
        "a merge bomb": bomb.replace("[", "[").replace("x,", "{k: v},"),
        "nesting": "judge: " + "[" * (20_000 * scale) + "]" * (20_000 * scale),
        "a sexagesimal": "close: {quiet: 12:30:00}\n",
        "a key twice": "close: {quiet: 1s}\nclose: {quiet: 2s}\n",
    }
    folder.mkdir(parents=True, exist_ok=True)
    plain = _checked(folder, "close: {quiet: 1s}\n")
    usual = statistics.median(_checked(folder, "close: {quiet: 1s}\n")[1] for _ in range(3))
    if plain[0] != 0:
        yield "a plain configuration is refused"
    for name, text in texts.items():
        code, took, output = _checked(folder, text)
        if code != 2:
            yield f"{name}: exit code {code}: {output[-300:]}"
        if took > usual + 1.0:
            yield f"{name}: an answer after {took:.1f} s; a plain one takes {usual:.1f} s"
        if "Traceback" in output or not output.strip():
            yield f"{name}: no clear answer: {output[-300:]}"


def _checked(folder: Path, text: str) -> tuple[int, float, str]:
    """Return exit code, seconds and output of ``config check``."""
    file = folder / "config.yaml"
    file.write_text(text)
    path = os.pathsep.join(entry for entry in sys.path if entry)
    outside = {key: value for key, value in os.environ.items() if not key.startswith("PANDAEVAL")}
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", _CLI, "config", "check", str(file)],
        env=outside | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, time.monotonic() - began, done.stdout + done.stderr
