"""Facts of recorded programs: an agent with tools, some questions, and a tool that fails.

python tests/golden/test_programs.py          # rewrites the facts; compare each change with the recording

The agent looks after a garden or books ferries, some with a sub-agent. Its model is scripted, and each program records
it with another instrumentation.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "programs"
sys.path[:0] = [str(FOLDER.parents[2]), str(FOLDER.parents[2] / "collector")] if __name__ == "__main__" else []

from pandaeval_collector.analysis.rules._failures import failure_of  # noqa: E402
from pandaeval_collector.show.report.detail import describe  # noqa: E402
from pandaeval_lab.replay.files import Input  # noqa: E402
from pandaeval_lab.replay.trace_files import TraceFiles  # noqa: E402
from pandaeval_otel.model import Trace  # noqa: E402

STORED = FOLDER / "facts.json"
MISREAD = {
    "monocle": {"tool_calls"},  # the order of parallel calls is only in the request, which is not recorded
    "openinference_agno": {"output", "turns"},  # Agno joins the plan and the answer
    "openlit_agno": {"output", "turns"},
    "quarkus_langchain4j": {"input", "turns"},  # messages are joined without their roles
    "voltagent_subagents": {"tokens"},  # an agent's tokens are those of its own calls, and only the agent has them
}
"""Facts that are not read correctly, by program. The file of facts leaves them out."""
PLAIN = ("input", "output", "agent", "user_id", "status", "llm_calls", "models", "tokens", "turns")
NO_ID = "history:"
"""Begins session IDs that PandaEval derives from the conversation."""


def recordings() -> list[Path]:
    return sorted(FOLDER.glob("*.otlp.jsonl.xz"))


def name(recording: Path) -> str:
    return recording.name.partition(".")[0]


def facts(recording: Path) -> list[dict[str, Any]]:
    """Return the facts of each trace, in start order."""
    with TraceFiles() as run:
        for request in Input(str(recording)).requests():
            run.add(request)
        return [_facts(trace, MISREAD.get(name(recording), set())) for trace in run.traces()]


def _facts(trace: Trace, left_out: set[str]) -> dict[str, Any]:
    described = json.loads(json.dumps(describe(trace), default=str))
    session = described["session_id"] or ""
    found = {key: described[key] for key in PLAIN}
    found["session_id"] = NO_ID if session.startswith(NO_ID) else session
    found["tools"] = sorted(tool["name"] for tool in described["tools"])
    found["tool_calls"] = [
        [call["name"], call["arguments"], failure_of(read) or call["result"]]
        for call, read in zip(described["tool_calls"], trace.tool_calls, strict=True)
    ]
    return {key: value for key, value in found.items() if key not in left_out}


@pytest.mark.parametrize("recording", recordings(), ids=name)
def test_facts_of_recorded_programs_are_read(recording: Path) -> None:
    assert facts(recording) == json.loads(STORED.read_text())[name(recording)]


if __name__ == "__main__":
    every = {name(recording): facts(recording) for recording in recordings()}
    STORED.write_text(json.dumps(every, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
