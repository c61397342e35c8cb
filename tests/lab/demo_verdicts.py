"""Records a judge's verdicts on the sessions of ``pandaeval demo``.

    python tests/lab/demo_verdicts.py --folder DIR [--reader NAME]

Writes the questions into a folder (see its README.txt). After all answers, writes ``verdicts.json`` beside the
recordings. Existing replies are reused.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
import tempfile
from datetime import UTC, date, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from lab._mailbox import Folder, Mailbox  # noqa: E402
from lab.arena import Questions, asked, evaluate, wait_for_replies  # noqa: E402
from pandaeval_lab.cli._recordings import JUDGED, VERDICTS, requests  # noqa: E402
from pandaeval_lab.replay.trace_files import TraceFiles  # noqa: E402

RECORDINGS = files("pandaeval_lab.cli._recordings")


def messages_of_users() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    with TraceFiles() as run:
        run.add_all(requests())
        for trace in run.traces():
            found.setdefault(trace.session_id or "", []).extend(turn.user or "" for turn in trace.turns)
    return found


def recorded(folder: Folder, names: set[str], reader: str, day: date) -> dict[str, Any]:
    """Return the replies to ``names`` with their sessions."""
    replies = []
    for session, messages in sorted(messages_of_users().items()):
        for name in sorted(names):
            reply = folder.reply(name)
            if reply is not None and all(message in folder.request(name) for message in messages):
                verdict = {key: value for key, value in json.loads(reply).items() if key != "echo"}
                replies.append({"session": session, "question": "conversation", "messages": messages, "reply": verdict})
    return {"day": day.isoformat(), "reader": reader, "replies": replies}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where requests and replies are")
    parser.add_argument("--reader", default="", help="who answers; else as reader.txt in the folder says")
    given = parser.parse_args()
    folder, questions = Folder(given.folder), Questions.of(",".join(JUDGED), "session")
    with tempfile.TemporaryDirectory() as work, Mailbox(folder, questions.rewrite) as mailbox:
        traces = Path(work) / "traces.jsonl"
        traces.write_bytes(lzma.decompress(RECORDINGS.joinpath("sessions.otlp.jsonl.xz").read_bytes()))
        asked(lambda: evaluate(traces, questions, mailbox.url), mailbox, lambda names: wait_for_replies(folder, names))
        held = recorded(folder, mailbox.asked, given.reader or folder.reader or "unknown", datetime.now(UTC).date())
    Path(str(RECORDINGS.joinpath(VERDICTS))).write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
    print(f"{len(held['replies'])} replies of {len(messages_of_users())} sessions, read by {held['reader']}")


if __name__ == "__main__":
    main()
