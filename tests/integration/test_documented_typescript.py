"""The program of docs/start/typescript.md works with the newest releases.

``pytest -m e2e tests/integration/test_documented_typescript.py``
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.collector import CollectorProcess
from tests.support.model_server import ModelServer
from tests.support.script import Call, Conversation, Reply

_PAGE = (Path(__file__).parents[2] / "docs" / "start" / "typescript.md").read_text()

pytestmark = pytest.mark.e2e


def _script(conversation: Conversation) -> Reply:
    if conversation.messages[-1].role == "tool":
        return Reply("Order 17 is on its way.")
    return Reply(calls=(Call("find_order", {"number": 17}),))


@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_documented_typescript_program_gives_scores(tmp_path: Path) -> None:
    (packages,) = re.findall(r"^npm install (.+)$", _PAGE, re.MULTILINE)
    (script,) = re.findall(r"```js\n(.*?)```", _PAGE, re.DOTALL)
    folder = Path(os.environ.get("PANDAEVAL_NODE_FOLDER", tmp_path))
    if not (folder / "node_modules").exists():
        (folder / "package.json").write_text('{"private": true}')
        subprocess.run(["npm", "install", "--silent", "--ignore-scripts", *packages.split()], cwd=folder, check=True)
    (folder / "agent.mjs").write_text(script)
    with ModelServer({"shop": _script}) as model, CollectorProcess(tmp_path / "collector") as collector:
        collector.start()
        done = subprocess.run(
            ["node", "agent.mjs"],
            cwd=folder,
            env={
                **{key: value for key, value in os.environ.items() if not key.startswith("OTEL_")},
                "OTEL_EXPORTER_OTLP_ENDPOINT": collector.http,
                "OTEL_SERVICE_NAME": "shop",
                "OPENAI_API_KEY": "none",
                "OPENAI_BASE_URL": model.url("shop"),
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "Order 17 is on its way." in done.stdout
        collector.until(lambda: collector.at_rest() and bool(collector.results()), "at rest")
        results = {(each["level"], each["metric"]): each for each in collector.results()}
    assert results["trace", "response"]["score"] == 1.0
    assert results["trace", "coherence"]["outcome"] == "scored"
    assert {each["agent"] for each in results.values()} == {"shop-agent"}
    assert {each["session_id"] for each in results.values()} == {"conversation-7"}
