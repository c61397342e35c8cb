"""Runs the commands of README, CONTRIBUTING and docs in a fresh clone.

    python tests/lab/proofs/docs_commands.py [--tests] [--only PAGE ...]

Needs minutes and the package index. Prints every command with its outcome, and skipped commands with reasons; exit
code 1 on failure. Supplies files, servers and IDs as a user would. ``--tests`` includes the test suite. ``--only``
selects pages after README's installation.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parents[3]
_CACHE = Path.home() / ".cache" / "pandaeval"
_TIMEOUT_S = 900
_LEFT_OUT = (
    (r"pytest|\.ci/run", "runs the tests (--tests)"),
    (r"tests/lab/bench|tests/lab/proofs", "takes an hour; has a report of its own"),
    (r"tests/lab/arena\.py (?!--table)", "waits for readers"),
    (r"tests/support/programs\.py", "builds other programs for a quarter of an hour"),
    (r"gpt-|API_KEY", "needs a provider's key"),
    (r"\b(docker|kubectl|helm)\b", "needs an engine or a cluster"),
    (r"^npm |^node ", "is run by tests/integration/test_documented_typescript.py"),
    (r"\bamtool\b", "needs Alertmanager"),
    (r"from-trace 4bf|from-trace SESSION|from-failure", "needs a trace or a failure of one's own"),
    (r"cases run case\.yaml", "needs a case made of a failure (tests/integration/test_case_mocks.py)"),
    (r"(jaeger|tempo)(\+https)?://", "needs a trace store (tests/e2e/test_trace_sources.py)"),
    (r"tail -f", "needs a running collector"),
    (r"runs cancel RUN", "needs a run that is under way"),
    (r"RUN OTHER --store", "needs two runs over a file"),
    (r"schedule (pause|resume|remove)", "needs a schedule of one's own"),
    (r"cibuildwheel", "needs a container engine"),
    (r"task_completion", "needs results of a judge"),
    (r"pandaeval mcp|claude mcp", "needs a coding agent"),
    (r"pandaeval spans", "needs version 0.1"),
    (r"evals\.example", "needs a collector on another machine"),
    (r"pandaeval (labels|calibrate)", "needs judged runs and people (tests/lab/bench/trust_example.py has both)"),
)
_PROGRAMS = ("jq", "jaeger", "curl")
_OURS = r'"?pandaeval-otel(\[\w+\])?"?'
_APP = """
from opentelemetry import trace

def answer(message, context=None):
    with trace.get_tracer("app").start_as_current_span("invoke_agent example"):
        return "done"

if __name__ == "__main__":
    answer("hello")
"""
_PREPARE = """
python - <<'END'
import lzma, pathlib, pandaeval_lab.cli._recordings as demo
packed = pathlib.Path(demo.__file__).with_name("sessions.otlp.jsonl.xz").read_bytes()
for name in ("traces.otlp.jsonl", "traces.jsonl"):
    pathlib.Path(name).write_bytes(lzma.decompress(packed))
END
pandaeval inspect traces.jsonl --format json | python -c '
import json, sys
task = json.loads(sys.stdin.readline())["input"]
print(json.dumps([{"id": "talk", "inputs": {"task": task}, "graders": ["run_ended"]}]))
' > suite.yaml
pandaeval evaluate traces.jsonl --cases suite.yaml --format json > results.jsonl
cp results.jsonl last.jsonl
cp results.jsonl main.jsonl
"""
_READY = "for _ in $(seq 300); do curl -sf localhost:4329/readyz > /dev/null && break; sleep 0.2; done"
_SERVER = f"""
{{command}} & server=$!
{_READY}
curl -sf localhost:4329/readyz; echo; kill -TERM $server; wait $server
"""
_ASKS = re.compile(r"pandaeval (runs|schedule|spans|top|report)\b|:4328/api/v1/")
_LIVE = f"""
pandaeval collector > live.log 2>&1 &
{_READY}
PYTHONPATH=tests python - <<'END'
import json, pathlib, time, urllib.request
from support.recent import recent

def traces():
    with urllib.request.urlopen("http://127.0.0.1:4328/api/v1/traces?limit=100") as answer:
        return json.load(answer)["items"]

if not traces():
    lines = pathlib.Path("lines")
    lines.mkdir(exist_ok=True)
    for number, line in enumerate(pathlib.Path("traces.jsonl").read_text().splitlines()):
        (lines / f"{{number:03}}.json").write_text(line)
    for file in recent(sorted(lines.iterdir()), pathlib.Path("shifted")):
        data = file.read_bytes()
        address = f"http://127.0.0.1:4328/v1/{{'logs' if b'resourceLogs' in data else 'traces'}}"
        urllib.request.urlopen(urllib.request.Request(address, data, {{"content-type": "application/json"}}))
for _ in range(120):
    if len(traces()) >= 30:
        break
    time.sleep(1)
END
"""
_NEWEST = "$(pandaeval runs list | awk 'NR==%d {print $1}')"
_PLACEHOLDERS = {"RUN": _NEWEST % 2, "OTHER": _NEWEST % 3, "TRACE_ID": "89403782751965912dbe18fd9a8d8a32"}
"""Values of placeholders."""


@dataclass(frozen=True)
class Block:
    """A block of commands, with continuation lines joined."""

    page: str
    commands: tuple[str, ...]


def blocks() -> Iterator[Block]:
    pages = [_ROOT / "README.md", _ROOT / "CONTRIBUTING.md", *sorted((_ROOT / "docs").rglob("*.md"))]
    for page in pages:
        for text in re.findall(r"^```bash\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
            yield Block(str(page.relative_to(_ROOT)), tuple(_commands(text)))


def _commands(text: str) -> Iterator[str]:
    held = ""
    for line in text.splitlines():
        held = f"{held}\n{line}" if held else line
        if held.endswith("\\") or _spoken(held).count("'") % 2:
            continue
        if held.strip():
            yield held
        held = ""
    if held.strip():
        raise ValueError(f"a quote stays open in {held!r}")


def _spoken(command: str) -> str:
    return re.sub(r"(^|\s)# .*$", "", command, flags=re.MULTILINE)


def why_not(command: str, tests: bool) -> str:
    """Return the reason to skip a command, or ``""``."""
    for pattern, reason in _LEFT_OUT:
        if re.search(pattern, command) and not (tests and "--tests" in reason):
            return reason
    missing = [name for name in _PROGRAMS if re.search(rf"(^|\s|=\S*\s){name}\s", command) and not shutil.which(name)]
    return f"there is no {missing[0]} here" if missing else ""


def script(block: Block, tests: bool, left_out: list[tuple[str, str, str]]) -> str:
    """Return a block as a shell script that stops at the first failure."""
    lines = ["set -eo pipefail", "[ ! -d .venv ] || . .venv/bin/activate"]
    asking = False
    for command in block.commands:
        reason = why_not(command, tests)
        if reason:
            left_out.append((block.page, command.splitlines()[0], reason))
            continue
        # The packages are not on the package index yet, so the clone is installed.
        command = re.sub(_OURS, r'".\1"', command) if "pip install" in command else command
        plain = command.partition("  #")[0].rstrip()
        if _ASKS.search(command) and "--store" not in command and not asking:
            asking = True
            lines.append(_LIVE)
        command = re.sub(r"\b(RUN|OTHER|TRACE_ID)\b", lambda found: _PLACEHOLDERS[found[1]], command)
        lines.append(f"echo {_quoted(f'$ {plain}')}")
        if re.search(r"pandaeval collector$", plain):
            lines.append(_SERVER.format(command=plain))
        elif plain.endswith("&"):
            lines += [plain, "sleep 8"]
        else:
            lines += ["sleep 8" if "curl" in plain else ":", command]
    return "\n".join([*lines, "for job in $(jobs -p); do kill $job; done; wait || true"])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\"'\"'") + "'"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tests", action="store_true", help="also run what runs the tests")
    parser.add_argument(
        "--only", nargs="*", default=[], metavar="PAGE", help="only pages whose names hold one of these"
    )
    arguments = parser.parse_args()
    tests = arguments.tests
    left_out: list[tuple[str, str, str]] = []
    failed: list[str] = []
    os.environ["PATH"] = os.pathsep.join([os.environ["PATH"], str(_CACHE / "jaeger")])
    with tempfile.TemporaryDirectory(prefix="docs-commands-") as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "--quiet", _ROOT, clone], check=True)
        (clone / "app.py").write_text(_APP)
        dropped = ("PANDAEVAL", "OTEL_", "PYTHON", "VIRTUAL_ENV", "OPENAI_")
        environ = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
        environ["PANDAEVAL_DATA"] = str(clone / "pandaeval-data")
        for number, block in enumerate(blocks()):
            if number and arguments.only and not any(word in block.page for word in arguments.only):
                continue
            began = time.monotonic()
            text = script(block, tests, left_out)
            done = subprocess.run(["bash", "-c", text], cwd=clone, env=environ, timeout=_TIMEOUT_S, check=False)
            print(f"-- {block.page}: exit {done.returncode}, {time.monotonic() - began:.0f} s\n", flush=True)
            if done.returncode:
                failed.append(f"{block.page}: {block.commands[0]}")
            if number == 0:
                prepare = f". .venv/bin/activate\n{_PREPARE}"
                subprocess.run(["bash", "-ec", prepare], cwd=clone, env=environ, check=True)
    print("Left out:")
    for page, command, reason in left_out:
        print(f"  {page}: {command}\n      {reason}")
    print("Failed:", *(failed or ["none"]), sep="\n  ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
