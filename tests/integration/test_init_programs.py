"""Programs of ``pandaeval init`` with real frameworks.

Installs packages: ``pytest -m e2e tests/integration/test_init_programs.py``.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
from pathlib import Path
from uuid import UUID

import pytest
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from pandaeval_lab.cli.init import programs
from support.collector import CollectorProcess
from tests.integration.test_documented_frameworks import install
from tests.support.model_server import ModelServer
from tests.support.script import Call, Conversation, Reply

_TOOLS = ("npm", "go", "jbang")
_POM = """<project><modelVersion>4.0.0</modelVersion><groupId>shop</groupId><artifactId>shop</artifactId>
<version>1</version><dependencies>{}</dependencies></project>"""
_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
_NAMES = {"livekit": "shop_agent", "pipecat": "shop"}
"""Agents with fixed names."""


def _script(conversation: Conversation) -> Reply:
    if any(message.role == "tool" or message.calls for message in conversation.messages):
        return Reply("Order 17 is on its way.")
    name = next((each for each in conversation.tools if each.endswith("find_order")), "find_order")
    return Reply(calls=(Call(name, {"number": 17}),))


def printed(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["init", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("name", programs())
def test_a_printed_program_is_complete_and_explains_how_to_run_it(name: str, tmp_path: Path) -> None:
    text = printed(name)
    assert text == programs()[name].read_text()
    assert re.search(r"^(#|//)   ((pip|npm) install .+|go mod init|jbang)", text, re.MULTILINE)
    assert "pandaeval collector" in text
    assert re.search(r"[Cc]ontent (is |on|capture)", text, re.MULTILINE), "no capture advice"
    new = ("str(uuid4())", "randomUUID()", "rand.Text()", "createSession(", "its own session")
    assert any(each in text for each in new) or name == "claude", "each run must be a new session"
    if not text.startswith("//"):
        ast.parse(text)
    made = tmp_path / "agent"
    assert "its first lines list the packages" in printed(name, "-o", str(made))
    assert made.read_text() == text
    again = CliRunner().invoke(app, ["init", name, "-o", str(made)])
    assert (again.exit_code, again.stderr.count("\n")) == (2, 1)


def test_init_lists_all_programs_and_suggests_one_for_an_unknown_name() -> None:
    assert printed().split("\n")[:-1] == [f"pandaeval init {name}" for name in (*programs(), "cases")]
    wrong = CliRunner().invoke(app, ["init", "lang-graph"])
    assert (wrong.exit_code, wrong.stderr) == (2, "lang-graph: no example program; did you mean langgraph?\n")


def _command(text: str, folder: Path) -> list[str]:
    """Install the program's packages and save it; return its command."""
    if "//   go mod init" in text:
        (folder / "main.go").write_text(text)
        for command in (["go", "mod", "init", "shop"], ["go", "mod", "tidy"]):
            subprocess.run(command, cwd=folder, check=True)
        return ["go", "run", "."]
    if "//   jbang" in text:
        file = "ShopAgent.java" if "ShopAgent.java" in text else "agent.kt"
        (folder / file).write_text(text)
        return ["jbang", file] if shutil.which("jbang") else _with_maven(text, folder)
    (requirements,) = re.findall(r"^(?:#|//)   (?:pip|npm) install (.+)$", text, re.MULTILINE)
    packages = [each.strip('"') for each in requirements.split() if each != "."]
    if text.startswith("//"):
        (folder / "package.json").write_text('{"private": true}')
        subprocess.run(["npm", "install", "--silent", "--ignore-scripts", *packages], cwd=folder, check=True)
        (folder / "agent.mjs").write_text(text)
        return ["node", "agent.mjs"]
    (folder / "agent.py").write_text(text)
    return [str(install(folder / "venv", packages)), "agent.py"]


def _with_maven(text: str, folder: Path) -> list[str]:
    """Fetch the jars and compile the program."""
    jars = [_DEPENDENCY.format(*each.split(":")) for each in re.findall(r"^//DEPS (\S+)$", text, re.MULTILINE)]
    (folder / "pom.xml").write_text(_POM.format("".join(jars)))
    fetch = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"]
    compiled = ["javac", "-parameters", "-cp", "jars/*", "-d", "classes", "ShopAgent.java"]
    for command in (fetch, compiled):
        subprocess.run(command, cwd=folder, check=True)
    return ["java", "-cp", f"classes{os.pathsep}jars/*", "ShopAgent"]


def _missing(text: str) -> str:
    """Return why this machine cannot run the program, or nothing."""
    tool = next((each for each in _TOOLS if f"//   {each} " in text), "")
    if not tool or shutil.which(tool):
        return ""
    if tool != "jbang":
        return f"{tool} is not installed"
    if "ShopAgent.java" in text and shutil.which("mvn") and shutil.which("javac"):
        return ""
    return "neither JBang nor Maven with a JDK can run this program here"


@pytest.mark.e2e
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", programs())
def test_a_program_of_init_gives_scores(name: str, tmp_path: Path) -> None:
    text = printed(name)
    if reason := _missing(text):
        pytest.skip(reason)
    command = _command(text, tmp_path)
    with ModelServer({"shop": _script}) as model, CollectorProcess(tmp_path / "collector") as collector:
        collector.start()
        outside = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "PANDAEVAL_", "PYTHONPATH"))}
        keys = {
            "OPENAI_API_KEY": "none",
            "ANTHROPIC_API_KEY": "none",
            "GOOGLE_API_KEY": "none",
            "GOCACHE": str(tmp_path / "go"),
        }
        urls = {
            "OPENAI_BASE_URL": model.url("shop"),
            "ANTHROPIC_BASE_URL": f"{model.root}/shop",
            "GOOGLE_GEMINI_BASE_URL": f"{model.root}/shop",
            "PANDAEVAL_ENDPOINT": collector.grpc,
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{collector.grpc}" if name == "claude" else collector.http,
        }
        environ = {**outside, **keys, **urls, "HOME": str(tmp_path), "DO_NOT_TRACK": "1"}
        done = subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert "Order 17 is on its way." in done.stdout, done.stdout + done.stderr[-3000:]
        collector.until(lambda: bool(collector.results()) and collector.at_rest(), "done with the trace")
        found = {(each["level"], each["metric"]): each for each in collector.results()}
    assert found["trace", "response"]["score"] == 1.0
    assert found["trace", "coherence"]["outcome"] == "scored", found["trace", "coherence"]
    assert {each["service"] for each in found.values()} == {"shop"}
    if name != "claude":
        assert {each["agent"] for each in found.values()} == {_NAMES.get(name, "shop-agent")}
        [session_id] = {each["session_id"] for each in found.values()}
        assert name == "genkit" or UUID(session_id), "each run must have a new session ID"
