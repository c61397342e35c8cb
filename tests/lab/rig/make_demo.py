"""Creates the demo's data from ``demo_scenarios.py``.

    python tests/lab/rig/make_demo.py

Writes ``sessions.otlp.jsonl.xz`` and ``expected.json`` (good and bad sessions).
"""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.lab.rig.demo_scenarios import DEMO
from tests.lab.rig.environment import frameworks
from tests.lab.rig.play import Stage, as_lines

FOLDER = Path(__file__).resolve().parents[3] / "collector" / "pandaeval_lab" / "cli" / "_recordings"


def main() -> int:
    """Play all sessions; 1 without output after a failure."""
    sets = frameworks()
    requests = []
    with Stage({session.name: session.scenario.dialogue for session in DEMO}) as stage:
        for session in DEMO:
            framework = sets[session.framework]
            framework.install()
            run = stage.play(framework, session.name, session.scenario)
            print(f"{session.name} on {framework.name}: {run.summary}", flush=True)
            if run.failed:
                print(run.log, file=sys.stderr)
                return 1
            requests += run.requests
    (FOLDER / "sessions.otlp.jsonl.xz").write_bytes(lzma.compress(as_lines(requests), preset=9))
    names = {kind: [s.name for s in DEMO if s.good is (kind == "good")] for kind in ("good", "bad")}
    (FOLDER / "expected.json").write_text(json.dumps(names, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
