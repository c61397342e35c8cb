"""The examples of docs/guides/case-examples.md, with an agent that does not use PandaEval."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.judge import JudgeAnswer, JudgeServer

PAGE = (Path(__file__).parents[2] / "docs/guides/case-examples.md").read_text()
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
ADDRESS = "http://localhost:3000"
PLANS = [
    ["check_availability", "create_booking"],
    ["check_inventory", "purchase"],
    ["check_availability", "check_availability", "create_booking"],
    ["counter"],
]


def _user(number: int, body: dict[str, Any]) -> JudgeAnswer:
    """Ask once, then report that the goal is met."""
    is_first = len(body["messages"]) == 2
    state, message = ("going_on", "Please do it.") if is_first else ("goal_met", "")
    return JudgeAnswer(json.dumps({"reason": "as scripted", "state": state, "message": message}))


@contextmanager
def _agent(plan: Sequence[str]) -> Iterator[str]:
    """Serve chat completions that request the tools of ``plan``, one by one, before the answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            done = sum(message["role"] == "tool" for message in body["messages"])
            message: dict[str, Any] = {"role": "assistant", "content": "Done."}
            if done < len(plan):
                call = {"id": f"c{done}", "type": "function", "function": {"name": plan[done], "arguments": "{}"}}
                message = {"role": "assistant", "content": None, "tool_calls": [call]}
            data = json.dumps({"choices": [{"index": 0, "message": message}]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _run(folder: Path, text: str, plan: Sequence[str]) -> tuple[int, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PANDAEVAL", "GITHUB", "OTEL_"))}
    program = "from pandaeval_collector.cli import main; main()"
    with JudgeServer(_user) as models, _agent(plan) as address:
        (folder / "suite.yaml").write_text(text.replace(ADDRESS, address))
        config = {"judge": {"api_base": models.url, "api_key_env": "JUDGE_KEY"}}
        (folder / "pandaeval.yaml").write_text(json.dumps(config))
        options = ["--simulate", "openai/gpt-4o-mini", "-c", "pandaeval.yaml", "--metrics", "trial_correct"]
        command = [sys.executable, "-c", program, "cases", "run", "suite.yaml", *options]
        environ = {**kept, "JUDGE_KEY": "sk-test"}
        done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=240)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        pytest.param(text, plan, marks=[pytest.mark.slow] if number else [])
        for number, (text, plan) in enumerate(zip(EXAMPLES, PLANS, strict=True))
    ],
)
def test_documented_examples_pass_with_a_plain_http_agent(text: str, plan: list[str], tmp_path: Path) -> None:
    code, errors = _run(tmp_path, text, plan)
    assert code == 0, errors


def test_the_first_example_fails_if_the_agent_books_before_the_availability_check(tmp_path: Path) -> None:
    code, errors = _run(tmp_path, EXAMPLES[0], PLANS[0][::-1])
    assert code == 1, errors
    assert "case user-books-a-morning-slot: 1 of 1 trial not correct" in errors


def test_documented_line_counts_match_the_examples() -> None:
    line_counts = [int(lines) for lines in re.findall(r"^\|.*\| (\d+) \|$", PAGE, re.MULTILINE)]
    assert line_counts == [len([line for line in text.splitlines() if line.strip()]) for text in EXAMPLES]
    assert all(yaml.safe_load(text)["cases"] for text in EXAMPLES)
    assert max(line_counts) <= 40
