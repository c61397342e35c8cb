"""Usage errors: exit code 2 and a line with cause and cure."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pandaeval_collector.cli import app

TRACES = Path(__file__).parents[2] / "golden" / "captures" / "langgraph_genai" / "good.otlp.jsonl"
AWAY = "--url http://127.0.0.1:9"
NOBODY = "no collector answers at http://127.0.0.1:9 (ConnectError): start one with `pandaeval collector`, or give"
NO_STORE = "no store in empty"
UNREAD = "cannot read a store in empty"
RESULTS = (
    "cannot be read: No such file or directory; give the file that `pandaeval evaluate --format json -o FILE` wrote"
)
KEY = "bad.yaml:1:9 judge.modle: unknown key; did you mean model?"
NO_DRILL = "not the output of `pandaeval drill --format json` ("
FIELD = "case.yaml:1: cases[0].expected_tols: is not a field of a case; did you mean expected_tools?"
NO_FILE = "nowhere.yaml: no such file; `pandaeval config schema --example` prints an example"

MISTAKES = {
    "evaluat traces": "No such command 'evaluat'. Did you mean 'evaluate'? see `pandaeval -h`",
    "--verbose": "No such option: --verbose (Possible options: --version); see `pandaeval -h`",
    "runs strt": "No such command 'strt'. Did you mean 'start'? see `pandaeval runs -h`",
    "evaluate": "Missing argument 'files'; see `pandaeval evaluate -h`",
    "evaluate TRACES --metrc x": "No such option: --metrc (Possible options: --metrics); see `pandaeval evaluate -h`",
    "evaluate TRACES --format xml": "Invalid value for '--format': 'xml' is not one of 'table', 'json', 'junit'",
    "evaluate nowhere.jsonl": "nowhere.jsonl: No such file or directory; name a file of traces, - for standard",
    "evaluate empty.jsonl": "empty.jsonl: the file is empty",
    "evaluate TRACES --metrics tool_lop": "--metrics: tool_lop: unknown metric; did you mean tool_loop?",
    "evaluate TRACES --metrics ,": "--metrics names no metric; omit it for all metrics, or see `pandaeval",
    "evaluate TRACES --config nowhere.yaml": NO_FILE,
    "evaluate TRACES --config bad.yaml": KEY,
    "evaluate TRACES --where agnt=desk": "unknown key 'agnt'; known: agent, service, ",
    "evaluate TRACES --where agent": "write KEY=VALUE, where KEY is one of agent, service, environment, user",
    "evaluate TRACES --where agent=order-desk": "no trace in the input has this agent",
    "evaluate TRACES --where status=bad": "write error or ok",
    "evaluate TRACES --cases case.yaml": FIELD,
    "evaluate TRACES --cases nowhere.yaml": "nowhere.yaml: cannot be read: No such file or directory; name a case file",
    "evaluate TRACES --baseline nowhere.jsonl": RESULTS,
    "evaluate TRACES -o no/folder/x --format json": "No such file or directory; name a writable file in an existing",
    "evaluate jaeger://127.0.0.1:9?service=x": "cannot be reached; check that it runs, and that this is the port of",
    "inspect nowhere.jsonl": "name a file of traces, - for standard input, or a trace store such as jaeger://",
    "metrics tool_lop": "tool_lop: unknown metric; did you mean tool_loop?",
    "prompts tool_lop": "tool_lop: unknown metric; did you mean tool_loop?",
    "prompts tool_loop": "tool_loop calls no model, so it has no prompt; `pandaeval metrics` lists",
    f"traces {AWAY}": NOBODY,
    "traces --store empty": UNREAD,
    "traces --since yesterday": "--since yesterday: write a time (RFC 3339) or an age such as 7d or 2h",
    "sessions --url 127.0.0.1": "'127.0.0.1' is not the address of a collector: write http://HOST:PORT",
    "sessions --url http://kim:secret@127.0.0.1:9": "no collector answers at http://127.0.0.1:9 (ConnectError)",
    "failures --severity grave": "'grave' is not one of 'low', 'medium', 'high', 'critical'; see `pandaeval",
    f"runs show abc {AWAY}": NOBODY,
    "delete --before yesterday": "--before yesterday: write a day, such as 2026-01-31",
    "jobs retry --store empty": NO_STORE,
    "traces list --limit 0": "Input should be greater than or equal to 1; see `pandaeval traces list -h`",
    "report --since soon": "--since soon: write a time (RFC 3339) or an age such as 7d or 2h",
    "report --store empty": NO_STORE,
    "store export -o - --trace order-17": "a trace ID has 32 hexadecimal digits; a unique prefix is",
    "labels import nowhere.csv": "name a file of labels, such as `pandaeval labels next -o FILE` writes",
    "labels next --store empty": NO_STORE,
    "passk nowhere.jsonl": RESULTS,
    "passk nowhere.jsonl --k 0": "--k 0: write numbers of trials from 1 to 1000, such as 1,3,5",
    f"cases from-trace abc {AWAY}": NOBODY,
    "cases promote nowhere.jsonl": RESULTS,
    "config check bad.yaml": KEY,
    "config check nowhere.yaml": NO_FILE,
    "init lang-graph": "lang-graph: no example program; did you mean langgraph?",
    "drill nowhere.jsonl": "name a file of traces, - for standard input, or",
    "drill TRACES --model openai/x": "--model names a judge: add --judge, or omit --model",
    "drill TRACES --baseline no-map.json": NO_DRILL,
    "drill TRACES --baseline no-shares.json": NO_DRILL,
    "judge check --attacks 121": "Invalid value for '--attacks': Input should be less than or equal to 120",
    "judge check": "name a model with --model, or set judge.model",
    "calibrate labels.csv": "name the scores with either --results FILE or --store FOLDER",
    "collector --config bad.yaml": KEY,
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mistakes")
    (folder / "empty").mkdir()
    files = {
        "bad.yaml": "judge: {modle: x}\n",
        "case.yaml": "- {id: a, expected_tols: []}\n",
        "empty.jsonl": "",
        "no-map.json": '{"faults": ["exact_loop"]}',
        "no-shares.json": '{"faults": {"exact_loop": {"by_metric": {"response": 1}}}}',
        "labels.csv": "trace_id,metric,label\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def test_at_least_forty_usage_errors_are_covered() -> None:
    assert len(MISTAKES) >= 40


@pytest.mark.parametrize("written", MISTAKES)
def test_a_usage_error_prints_one_line_with_its_cure(
    written: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.delenv("PANDAEVAL_URL", raising=False)
    arguments = [str(TRACES) if each == "TRACES" else each for each in shlex.split(written)]
    done = CliRunner().invoke(app, arguments, prog_name="pandaeval")
    assert done.exit_code == 2, done.output
    assert done.stderr.count("\n") == 1, done.stderr
    assert MISTAKES[written] in done.stderr
    assert "secret" not in done.stderr
    assert not done.stdout
