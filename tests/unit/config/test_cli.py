"""`pandaeval config` and shared command behaviour."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from pandaeval_collector.cli import app
from pandaeval_collector.cli._config import resolve_config
from pandaeval_collector.cli._extras import hint
from pandaeval_collector.cli._output import console, safe, table
from pandaeval_collector.config import effective, load

Run = Callable[..., tuple[str, str]]

_ROOT = Path(__file__).parents[3]
_MAIN = "import sys; from pandaeval_collector.cli import main; sys.argv[0] = 'pandaeval'; main()"
_BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""


@pytest.fixture(autouse=True)
def _no_variables_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PANDAEVAL_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the application; check the exit code; return its output."""

    def call(*arguments: str, code: int = 0) -> tuple[str, str]:
        with pytest.raises(SystemExit) as left:
            app(list(arguments), prog_name="pandaeval")
        printed = capsys.readouterr()
        assert left.value.code == code, printed
        return printed

    return call


def _process(*arguments: str, before: str = "") -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join([str(_ROOT), str(_ROOT / "collector")])}
    return subprocess.run(
        [sys.executable, "-c", before + _MAIN, *arguments], capture_output=True, text=True, env=environ, timeout=60
    )


def test_a_valid_file_passes(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("close: {quiet: 5s}\n")
    assert run("config", "check", str(path)) == (f"{path} is valid\n", "")
    assert run("config", "check") == ("the configuration is valid\n", "")


def test_problems_of_a_file_are_printed_on_stderr_with_exit_code_2(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent / "bad_configs")
    for command in (["config", "check", "wrong_choices.yaml"], ["config", "show", "--config", "wrong_choices.yaml"]):
        out, err = run(*command, code=2)
        assert out == ""
        assert err == Path("wrong_choices.txt").read_text(encoding="utf-8")


def test_names_of_metrics_and_embedders_are_checked(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("metrics: {enabled: [trace.coherense]}\nembedding: {model: embeded}\n")
    _, err = run("config", "check", str(path), code=2)
    assert err.splitlines() == [
        f"{path}:1:21 metrics.enabled[0]: trace.coherense: unknown metric; did you mean trace.coherence?",
        f'{path}:2:20 embedding.model: "embeded" is not an embedder; did you mean embedded?',
    ]


def test_unusable_metric_modules_are_reported_with_their_places(run: Run, tmp_path: Path) -> None:
    path, broken = tmp_path / "config.yaml", tmp_path / "broken.py"
    broken.write_text("METRIC = 1\n")
    path.write_text(f"metrics:\n  modules: [no_such_thing, {broken}]\n  enabled: [trace.mine]\n")
    _, err = run("config", "check", str(path), code=2)
    first, second = err.splitlines()
    assert first.startswith(f"{path}:2:13 metrics.modules[0]: there is no module no_such_thing; write the path")
    assert second == f"{path}:2:28 metrics.modules[1]: {broken}: it holds no METRIC = pandaeval_collector.Metric(…)"


def test_a_missing_environment_variable_is_a_note_unless_strict(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("judge: {api_key_env: PANDAEVAL_TEST_KEY}\n")
    problem = f"{path}:1:22 judge.api_key_env: the environment variable PANDAEVAL_TEST_KEY is not set or is empty\n"
    assert run("config", "check", str(path)) == (f"{path} is valid\n", f"note: {problem}")
    assert run("config", "check", "--strict", str(path), code=2) == ("", problem)


@pytest.mark.parametrize(
    ("text", "package", "problem"),
    [
        ("judge: {model: azure/mine}", "litellm", ":1:16 judge.model: litellm is not installed; install it with: pip"),
        ("judge: {model: azure/mine}\nredact: {pii: true}", "presidio_analyzer", ":2:15 redact.pii: presidio_analyzer"),
        ("embedding: {model: 'litellm:x'}", "litellm", ":1:20 embedding.model: litellm is not installed"),
    ],
)
def test_a_missing_extra_is_a_note_unless_strict(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, package: str, problem: str
) -> None:
    monkeypatch.setattr("pandaeval_collector.cli._config.find_spec", lambda name: None if name == package else object())
    path = tmp_path / "config.yaml"
    path.write_text(text)
    out, err = run("config", "check", str(path))
    (note,) = err.splitlines()
    assert note.startswith(f"note: {path}{problem}")
    assert out == f"{path} is valid\n"
    assert run("config", "check", "--strict", str(path), code=2)[1] == note.removeprefix("note: ") + "\n"


_MODELS = """judge:
  model: gpt-4o-mini
  fallbacks: [ollama/llama3, anthropic/claude-haiku-4-5]
  models: {trace.plan_quality: gemini/gemini-2.5-flash}
embedding: {model: "litellm:openai/text-embedding-3-small"}
"""
_UNSET = "the environment variable {} is not set; set it"
_KEYS = {
    "judge.model": f"2:10 judge.model: {_UNSET.format('OPENAI_API_KEY')}, or name another variable in "
    "judge.api_key_env",
    "judge.fallbacks": f"3:30 judge.fallbacks[1]: {_UNSET.format('ANTHROPIC_API_KEY')}",
    "judge.models": f"4:32 judge.models.trace.plan_quality: {_UNSET.format('GEMINI_API_KEY or GOOGLE_API_KEY')}",
    "embedding.model": f"5:20 embedding.model: {_UNSET.format('OPENAI_API_KEY')}",
}


class TestModelKeys:
    @pytest.fixture
    def path(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        if find_spec("litellm") is None:
            pytest.skip("needs litellm's list of models")
        for name in os.environ:
            if name.startswith(("OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_")):
                monkeypatch.delenv(name)
        monkeypatch.chdir(tmp_path)
        path = tmp_path / "config.yaml"
        path.write_text(_MODELS)
        return path

    def test_each_missing_key_is_named_with_its_place(self, run: Run, path: Path) -> None:
        problems = [f"{path}:{each}" for each in _KEYS.values()]
        notes = run("config", "check", str(path))[1].splitlines()
        assert sorted(notes) == sorted(f"note: {each}" for each in problems)
        assert run("config", "check", "--strict", str(path), code=2)[1].splitlines() == problems
        out, _ = run("doctor", "--config", str(path), code=1)
        assert [line for line in out.splitlines() if "config.yaml:" in line] == [
            f"wrong  configuration: {each}" for each in problems
        ]

    def test_a_key_that_is_set_is_no_problem(self, run: Run, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
            monkeypatch.setenv(name, "k")
        assert run("config", "check", "--strict", str(path))[1] == ""

    def test_api_key_env_applies_to_models_of_the_same_provider(
        self, run: Run, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OWN", "k")
        path.write_text("judge: {model: openai/a, fallbacks: [openai/b, xai/c], api_key_env: OWN}\n")
        _, err = run("config", "check", "--strict", str(path), code=2)
        assert err == f"{path}:1:48 judge.fallbacks[1]: {_UNSET.format('XAI_API_KEY')}\n"

    def test_recorded_replies_need_no_key(self, run: Run, path: Path) -> None:
        path.write_text("judge: {model: openai/a, api_base: 'file:replies.json'}\n")
        assert run("config", "check", "--strict", str(path))[1] == ""

    def test_the_configuration_of_the_collector_resolves_without_keys(self, path: Path) -> None:
        assert resolve_config(path, on_this_machine=True, apart=True).config.judge.model == "gpt-4o-mini"


def test_show_prints_effective_values_with_their_sources(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("close: {quiet: 5s}\nexporters: {otlp: {endpoint: 'http://me:hunter2@backend:4317'}}\n")
    monkeypatch.setenv("PANDAEVAL_EMBEDDING__MODEL", "multilingual")
    out, _ = run("config", "show", "--config", str(path))
    assert f"  quiet: 5s  # {path}:1:16\n" in out
    assert "  model: multilingual  # environment PANDAEVAL_EMBEDDING__MODEL\n" in out
    assert "hunter2" not in out
    shown = effective(load(path, {"PANDAEVAL_EMBEDDING__MODEL": "multilingual"}))
    assert yaml.safe_load(out) == shown
    out, _ = run("config", "show", "--config", str(path), "--format", "json")
    assert json.loads(out) == shown


def test_schema_and_example_are_printed_whole(run: Run) -> None:
    schema = json.loads(run("config", "schema")[0])
    assert schema["properties"]["close"]["$ref"] == "#/$defs/Close"
    assert run("config", "schema", "--example")[0] == (_ROOT / "collector/config.example.yaml").read_text("utf-8")


def test_help_and_version_are_printed(run: Run) -> None:
    assert "config" in run("--help")[0]
    assert run("--version")[0].startswith("pandaeval")


def test_an_unknown_command_is_an_error(run: Run) -> None:
    assert "No such command" in run("confg", code=2)[1]


def test_help_imports_nothing_heavy() -> None:
    before = "import atexit, sys; atexit.register(lambda: print('loaded', *sys.modules, sep='\\n'))\n"
    result = _process("--help", before=before)
    assert result.returncode == 0
    loaded = set(result.stdout.partition("loaded\n")[2].split())
    assert "pandaeval_collector.cli._app" in loaded
    assert not loaded & {"numpy", "grpc", "opentelemetry.sdk", "litellm", "starlette", "pandaeval_collector.cli.config"}


@pytest.mark.parametrize(("package", "arguments"), [("typer", ["--help"]), ("yaml", ["config", "check"])])
def test_a_missing_extra_is_named(package: str, arguments: list[str]) -> None:
    result = _process(*arguments, before=_BLOCKED.format(package=package))
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        f"{package} is not installed; install it with: pip install pandaeval-collector "
        "(in a clone of the repository: pip install . ./collector)\n"
    )


def test_only_missing_packages_of_an_extra_get_an_install_hint() -> None:
    wrapped = ImportError("a file could not be imported")
    wrapped.__cause__ = ModuleNotFoundError("No module named 'litellm.router'", name="litellm.router")
    assert (hint(wrapped) or "").startswith("litellm is not installed; install it with: pip install")
    assert '"pandaeval-collector[judge]"' in (hint(wrapped) or "")
    assert '"./collector[judge]"' in (hint(wrapped) or "")
    assert hint(ModuleNotFoundError("No module named 'my_metrics'", name="my_metrics")) is None
    assert hint(ImportError("cannot import name")) is None


@pytest.mark.parametrize("arguments", ["config schema --example", "metrics"])  # by print, by a console
def test_a_closed_output_pipe_prints_no_error(arguments: str) -> None:
    command = f'"{sys.executable}" -c "$MAIN" {arguments}; echo "code $?" >&2'
    environ = {**os.environ, "MAIN": _MAIN, "PYTHONPATH": os.pathsep.join([str(_ROOT), str(_ROOT / "collector")])}
    result = subprocess.run(
        ["/bin/sh", "-c", f"({command}) | (exec true)"], capture_output=True, text=True, env=environ, timeout=60
    )
    assert result.stderr == "code 141\n"


def test_tables_without_a_terminal_are_plain_with_escaped_cells() -> None:
    out = StringIO()
    on = Console(file=out, width=500, markup=False)
    on.print(table(["name", "reason"], [["[red]a", "x" * 200], ["b\x1b[2J", 0.5]], on=on))
    assert [line.split() for line in out.getvalue().splitlines()] == [
        ["name", "reason"],
        ["[red]a", "x" * 200],
        ["b\\x1b[2J", "0.5"],
    ]


def test_the_console_obeys_no_color_and_is_wide_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert console().no_color
    assert console().width > 10_000


def test_text_is_made_safe_for_a_terminal() -> None:
    assert safe("a\tb\nc é 漢") == "a\\tb\\nc é 漢"
    assert safe("\x1b]0;title\x07") == "\\x1b]0;title\\x07"
    assert safe("\u202eabc\x9b") == "\\u202eabc\\x9b"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("judge: {models: {trace.confidense: m}}", "judge.models.trace.confidense: unknown metric"),
        (
            "judge: {only: {agents: [a]}}",
            "has agents, which was removed. Write `gen_ai.agent.name: [NAME]` in `judge.only`.",
        ),
    ],
)
def test_unknown_judge_metrics_and_removed_filters_are_an_error(
    run: Run, tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text + "\n")
    _, err = run("config", "check", str(path), code=2)
    assert message in err


def test_a_judge_sample_with_an_attribute_filter_is_valid(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("judge: {sample: 0.05, only: {tenant: [gold]}}\n")
    _, err = run("config", "check", str(path))
    assert not err
