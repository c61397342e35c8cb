"""The general Python snippets of docs/start/python.md run in one application."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from support.agents import scored
from support.collector import CollectorProcess

_DOCS = Path(__file__).parents[2] / "docs" / "start" / "python.md"
_APPLICATION = '''
import ast, asyncio, contextlib, inspect, re, sys

from opentelemetry import trace
from support.agents import run_agent

class agent:
    traces = []
    def run(question):
        agent.traces.append(run_agent(trace.get_tracer("documented"), len(agent.traces)))

class Enough(BaseException):
    """Watching has no end of its own."""

shown = []
def show(*values):
    shown.append(values)
    raise Enough

def run(snippet, known):
    code = compile(snippet, "python.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if code.co_flags & inspect.CO_COROUTINE:
        with contextlib.suppress(Enough):
            asyncio.run(eval(code, known))
    else:
        exec(code, known)

known = {"agent": agent, "print": show, "contextlib": contextlib, "asyncio": asyncio}
known["EMAIL"] = re.compile(r"[a-z]+@[a-z.]+")
for snippet in sys.stdin.read().split("\\f"):
    if "wait_for_result" in snippet:  # they want a trace that is done, and a session that goes on
        with trace.get_tracer("documented").start_as_current_span("request") as span:
            agent.run("")
        known["span"] = span
        with known["using_session"]("conversation-7"):
            agent.run("")
    run(snippet, known)
assert shown and shown[0][0], shown
assert known["redact"]("key", "write to ann@example.org") == "write to [e-mail]"

async def serve():
    async with known["lifespan"](None):
        pass
asyncio.run(serve())
known["logs"].shutdown()
print(*agent.traces)
'''


def test_documented_python_snippets_run_and_their_traces_are_scored(tmp_path: Path) -> None:
    text = _DOCS.read_text()
    general = text.split("\n## Frameworks\n")[0] + text.split("\n## Sessions, users, test cases\n")[1]
    first, *snippets = re.findall(r"```python\n(.*?)```", general, re.DOTALL)
    assert first.splitlines()[-1].split("  ")[0] in snippets[0], "the whole example must have the first line"
    assert len(snippets) >= 6
    with CollectorProcess(tmp_path) as collector:
        collector.start()
        outside = {key: value for key, value in os.environ.items() if not key.startswith(("PANDAEVAL", "OTEL_"))}
        done = subprocess.run(
            [sys.executable, "-c", _APPLICATION],
            input="\f".join(snippets),
            env={
                **outside,
                "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
                "PANDAEVAL_ENDPOINT": collector.grpc,
                "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{collector.grpc}",
            },
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        traces = {*done.stdout.split()}
        assert len(traces) >= 3
        collector.until(lambda: traces <= scored(collector.results()), "done with all of them")
        sessions = {each["session_id"] for each in collector.results()}
        assert {"conversation-7"} <= sessions
