"""An editor's utility calls are not runs."""

from __future__ import annotations

import json
from pathlib import Path

from support.ferry_desk import span, trace
from support.line import RunningPipeline, as_file
from support.made_traces import START_NS, MadeTrace
from support.two_lines import QUIET

TITLE = "You are an expert in crafting pithy titles for chat conversations."


def title(number: int) -> MadeTrace:
    trace_id, start = number.to_bytes(16, "big"), START_NS + number * 1000 * 10**6
    given = [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in
             (("system", TITLE), ("user", "And now?"))]  # fmt: skip
    output = [{"role": "assistant", "parts": [{"type": "text", "content": "What comes now"}]}]
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": "s"}
    attributes |= {"gen_ai.input.messages": json.dumps(given), "gen_ai.output.messages": json.dumps(output)}
    return MadeTrace(trace_id, "s", "shop", (span(trace_id, 0, b"", "chat m", start, 50, attributes),))


async def test_a_title_call_does_not_count_as_a_trace_of_its_session(tmp_path: Path) -> None:
    asked, named = trace(1, "You are booked."), title(2)
    async with RunningPipeline(tmp_path) as line:
        for each in (asked, named, trace(3, "Bye.")):
            await line.send(each)
            await line.wait(QUIET)
        await line.settle()
        of_title = [
            each for each in line.results() if each["trace_id"] == named.trace_id.hex() and each["level"] == "trace"
        ]
        assert [(each["metric"], each["outcome"], each["metadata"]["utility"]) for each in of_title] == [
            ("response", "assumed", "title")
        ]
        sessions = [each for each in line.results() if each["metric"] == "agent_reliability"]
        assert sessions[-1]["metadata"]["total_traces_in_session"] == 2
        assert line.standing() == as_file([asked, named, trace(3, "Bye.")])
