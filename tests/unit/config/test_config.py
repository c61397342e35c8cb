"""Sources, precedence and errors of configuration values."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
import yaml

from pandaeval_collector.config import (
    Config,
    ConfigError,
    check_embedder,
    check_metrics,
    effective,
    load,
    resolve,
)
from pandaeval_collector.config._tree import keys, variable

_BAD = Path(__file__).parent / "bad_configs"
_METRICS = [
    *(("trace", name) for name in ("coherence", "confidence", "plan_quality")),
    *(("turn", name) for name in ("coherence", "helpfulness")),
    ("trial", "plan_quality"),
]

# The names and defaults that users rely on. Sections may gain keys, but no key or default below may change.
_PROMISED = """
server: {grpc: "127.0.0.1:4327", http: "127.0.0.1:4328", health: "127.0.0.1:4329", insecure_bind: false, tls: null, token_env: null}
close: {quiet: 10s, idle: 180s, max_age: 30m, max_spans: 10000, max_bytes: 32MiB}
late: {policy: rescore, window: 10m}
session: {idle: 15m, max_age: 24h, loop_signal: sure, coherence_signal: sure, extra_signals: [response, grounding, tool_loop, correctness], weights: {}}
metrics: {enabled: all, thresholds: {}, modules: []}
embedding: {model: embedded}
judge: {model: null, api_base: null, api_key_env: null, timeout: 60s, concurrency: 8, rpm: null, tpm: null, daily_usd: null, delay: 30s, sample: 1.0, models: {}}
redact: {secrets: true, pii: false}
store: {path: "./pandaeval-data", durability: full, max_bytes: 10GiB, retention: 7d, on_shutdown: persist}
exporters:
  otlp: {endpoint: null, protocol: grpc, insecure: true, headers_env: null, traces: {}, metrics: {}, logs: {}, metrics_interval: 15s}
  prometheus: {enabled: true, results: null}
  jsonl: {path: null}
gates: {fail_on_error_severity: critical, max_unscored: 0.2}
"""  # noqa: E501


def _file(folder: Path, text: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def _problems(path: Path | None, environ: dict[str, str]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(path, environ)
    return [str(problem) for problem in caught.value.problems]


def _is_part_of(part: object, whole: object) -> bool:
    if isinstance(part, dict) and part:
        return isinstance(whole, dict) and all(key in whole and _is_part_of(part[key], whole[key]) for key in part)
    return part == whole or (part == {} and isinstance(whole, dict))


def test_public_keys_keep_their_names_and_defaults(tmp_path: Path) -> None:
    assert load(_file(tmp_path, _PROMISED), {}) == Config() == load(None, {})
    promised = yaml.safe_load(_PROMISED)
    assert _is_part_of(promised, effective(Config()))


def test_durations_are_seconds_and_sizes_bytes() -> None:
    config = Config()
    assert (config.close.quiet, config.session.max_age, config.store.retention) == (10.0, 86400.0, 604800.0)
    assert (config.close.max_bytes, config.store.max_bytes) == (32 * 2**20, 10 * 2**30)


def test_options_override_variables_and_variables_override_the_file(tmp_path: Path) -> None:
    path = _file(tmp_path, "close: {quiet: 1s, idle: 2s}\njudge: {model: from-file, concurrency: 3}\n")
    environ = {"PANDAEVAL_CLOSE__IDLE": "5s", "PANDAEVAL_JUDGE__MODEL": "from-environment"}
    config = load(path, environ, {"judge.model": "from-options", "judge.concurrency": None})
    assert (config.close.quiet, config.close.idle, config.close.max_age) == (1.0, 5.0, 1800.0)
    assert (config.judge.model, config.judge.concurrency) == ("from-options", 3)


def test_empty_sections_keep_their_defaults(tmp_path: Path) -> None:
    text = "close:\n  # quiet: 5s\nsession:\n  weights:\nexporters:\n  otlp:\n"
    assert load(_file(tmp_path, text), {}) == Config()
    assert load(_file(tmp_path, ""), {}) == Config()


def test_anchors_and_merge_keys_work(tmp_path: Path) -> None:
    text = (
        "exporters:\n  otlp:\n    traces: &one {endpoint: 'backend:4317'}\n"
        "    logs: *one\n    metrics: {<<: *one, enabled: false}\n"
    )
    otlp = load(_file(tmp_path, text), {}).exporters.otlp
    assert otlp.traces == otlp.logs
    assert (otlp.metrics.endpoint, otlp.metrics.enabled) == ("backend:4317", False)


def test_every_key_can_be_set_by_an_environment_variable() -> None:
    """The section server.tls is excluded."""
    leaves = [key for key in keys().values() if not key.section and key.path[:2] != ("server", "tls")]
    assert len(leaves) > 80
    for key in leaves:
        resolved = resolve(None, {variable(key.path): json.dumps(key.default)})
        assert resolved.origins[key.path].source == f"environment {variable(key.path)}", key.path
        assert resolved.config == Config(), key.path


@pytest.mark.parametrize(
    ("name", "value", "key", "expected"),
    [
        ("CLOSE__QUIET", "5s", "close.quiet", 5.0),
        ("CLOSE__MAX_BYTES", "1MiB", "close.max_bytes", 1 << 20),
        ("EXPORTERS__OTLP__ENDPOINT", "http://backend:4317", "exporters.otlp.endpoint", "http://backend:4317"),
        ("EXPORTERS__PROMETHEUS__RESULTS", "true", "exporters.prometheus.results", True),
        ("SESSION__EXTRA_SIGNALS", "[]", "session.extra_signals", ()),
        ("SESSION__EXTRA_SIGNALS", '["response"]', "session.extra_signals", ("response",)),
        ("SESSION__WEIGHTS", "{confidence: 2}", "session.weights", {"confidence": 2.0}),
        ("SESSION__WEIGHTS", '{"confidence": 2}', "session.weights", {"confidence": 2.0}),
        ("METRICS__ENABLED", "all", "metrics.enabled", "all"),
        ("METRICS__ENABLED", "[coherence]", "metrics.enabled", ("coherence",)),
        ("METRICS__THRESHOLDS__TRACE__COHERENCE", "0.4", "metrics.thresholds", {"trace.coherence": 0.4}),
        ("JUDGE__MODELS__CONFIDENCE", "openai/gpt-4o", "judge.models", {"confidence": "openai/gpt-4o"}),
        ("JUDGE__MODEL", "2024", "judge.model", "2024"),
        ("JUDGE__MODEL", "no", "judge.model", "no"),
        ("JUDGE__MODEL", '"quoted"', "judge.model", "quoted"),
        ("JUDGE__MODEL", "null", "judge.model", None),
        ("JUDGE__MODEL", "  ", "judge.model", None),
        ("STORE__PATH", "/data/#1: [x", "store.path", "/data/#1: [x"),
        ("CLOSE", "{quiet: 3s}", "close.quiet", 3.0),
        ("GATES__FAIL_ON_ERROR_SEVERITY", "null", "gates.fail_on_error_severity", None),
    ],
)
def test_an_environment_variable_is_parsed_by_the_type_of_its_key(
    name: str, value: str, key: str, expected: object
) -> None:
    found: object = load(None, {f"PANDAEVAL_{name}": value})
    for part in key.split("."):
        found = getattr(found, part)
    assert found == expected


def test_a_map_variable_replaces_the_map_of_the_file_and_an_entry_variable_adds_to_it(tmp_path: Path) -> None:
    path = _file(tmp_path, "session: {weights: {coherence: 3}}\n")
    whole = load(path, {"PANDAEVAL_SESSION__WEIGHTS": "{confidence: 2}"})
    assert whole.session.weights == {"confidence": 2.0}
    both = load(path, {"PANDAEVAL_SESSION__WEIGHTS__CONFIDENCE": "2"})
    assert both.session.weights == {"coherence": 3.0, "confidence": 2.0}


def test_a_section_variable_adds_to_the_section_of_the_file(tmp_path: Path) -> None:
    path = _file(tmp_path, "close: {quiet: 1s, idle: 2s}\n")
    close = load(path, {"PANDAEVAL_CLOSE": "{idle: 3s}"}).close
    assert (close.quiet, close.idle) == (1.0, 3.0)


def test_pandaeval_data_sets_the_store_path_unless_the_file_or_key_does(tmp_path: Path) -> None:
    data = {"PANDAEVAL_DATA": "/from/data"}
    path = _file(tmp_path, "store: {path: /from/file}\n")
    assert load(None, data).store.path == "/from/data"
    assert load(path, data).store.path == "/from/file"
    assert load(None, {**data, "PANDAEVAL_STORE__PATH": "/from/key"}).store.path == "/from/key"
    assert load(None, {"PANDAEVAL_DATA": " "}).store.path == "./pandaeval-data"


def test_environment_variables_of_other_programs_are_ignored() -> None:
    environ = {
        "PANDAEVAL_PORT_4327_TCP": "tcp://10.0.0.1:4327",  # Kubernetes sets this for a service called pandaeval
        "PANDAEVAL_SERVICE_HOST": "10.0.0.1",
        "PANDAEVAL_ENDPOINT": "localhost:4327",
        "OTHER__CLOSE__QUIET": "x",
    }
    assert load(None, environ) == Config()


@pytest.mark.parametrize("path", sorted(_BAD.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_problem_of_a_file_is_reported_with_its_place(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(_BAD)
    checks = [
        lambda config: check_metrics(config, _METRICS),
        lambda config: check_embedder(config, ["embedded", "litellm"]),
    ]
    with pytest.raises(ConfigError) as caught:
        load(Path(path.name), {}, checks=checks)
    assert str(caught.value) == path.with_suffix(".txt").read_text(encoding="utf-8").rstrip("\n")
    assert "hunter2" not in str(caught.value)


def test_problems_of_environment_variables_name_the_variable() -> None:
    environ = {
        "PANDAEVAL_CLOSE__QUIET": "ten",
        "PANDAEVAL_CLOSE__QIET": "5s",
        "PANDAEVAL_CLOSE_IDLE": "5s",
        "PANDAEVAL_EXPORTERS__OTLP_ENDPOINT": "x",
        "PANDAEVAL_LATE": "{windo: 5s}",
        "PANDAEVAL_JUDGE__MODELS": "{a: ",
        "PANDAEVAL_SERVER__TLS__CERT": "/tls/server.crt",
        "PANDAEVAL_BANANA__PEEL": "1",
        "PANDAEVAL_STORE__ON_SHUTDOWN": "forward",
    }
    problems = [problem.removeprefix("environment PANDAEVAL_") for problem in _problems(None, environ)]
    assert problems == [
        "BANANA__PEEL banana: unknown key; known here: server, kafka, close, late, line, session, metrics, "
        "response, embedding, judge, redact, store, ui, spans, exporters, gates",
        "CLOSE_IDLE: is not read; write PANDAEVAL_CLOSE__IDLE, with two underscores after a section",
        "CLOSE__QIET: unknown key; did you mean PANDAEVAL_CLOSE__QUIET?",
        'CLOSE__QUIET: "ten" is not a duration; write 10s, 15m or 24h',
        "EXPORTERS__OTLP_ENDPOINT: unknown key; known here: jsonl, kafka, otlp, prometheus, webhook",
        "JUDGE__MODELS: is not valid YAML: while parsing a flow node, expected the node content, "
        "but found '<stream end>'",
        "LATE late.windo: unknown key; did you mean window?",
        "SERVER__TLS__CERT server.tls.key: is missing: PEM file with the private key of the certificate.",
        'STORE__ON_SHUTDOWN: "forward" is not one of persist, decide',
    ]
    assert _problems(None, {"PANDAEVAL_CLOSE__QUIET": "ten"})[0].startswith("environment PANDAEVAL_CLOSE__QUIET: ")


def test_problems_of_all_sources_are_reported_together_with_the_file_first(tmp_path: Path) -> None:
    path = _file(tmp_path, "late:\n  policy: never\nclose:\n  quiet: ten\n")
    with pytest.raises(ConfigError) as caught:
        load(path, {"PANDAEVAL_CLOSE__IDLE": "long"}, {"judge.sample": 7, "judge.modle": "x"})
    assert [str(problem) for problem in caught.value.problems] == [
        f'{path}:2:11 late.policy: "never" is not one of rescore, count',
        f'{path}:4:10 close.quiet: "ten" is not a duration; write 10s, 15m or 24h',
        "command line judge.modle: unknown key; did you mean model?",
        "command line judge.sample: 7 must be 1 or less",
        'environment PANDAEVAL_CLOSE__IDLE: "long" is not a duration; write 10s, 15m or 24h',
    ]


def test_a_conflict_is_reported_at_the_value_that_was_set(tmp_path: Path) -> None:
    path = _file(tmp_path, "close: {idle: 5s}\n")
    assert _problems(path, {}) == [f"{path}:1:15 close.idle: close.quiet (10s) is longer than close.idle (5s)"]
    assert _problems(None, {"PANDAEVAL_CLOSE__QUIET": "1h"}) == [
        "environment PANDAEVAL_CLOSE__QUIET: close.quiet (1h) is longer than close.idle (180s)"
    ]


def test_a_missing_file_or_a_directory_is_an_error(tmp_path: Path) -> None:
    missing = tmp_path / "missing.yaml"
    assert _problems(missing, {}) == [f"{missing}: no such file; `pandaeval config schema --example` prints an example"]
    assert _problems(tmp_path, {}) == [f"{tmp_path}: is a directory, not a file"]


def test_a_too_deeply_nested_file_is_an_error(tmp_path: Path) -> None:
    path = _file(tmp_path, "close: " + "[" * 20_000)
    assert _problems(path, {}) == [f"{path}:1:37: is not valid YAML: it is nested more than 30 levels deep"]


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGES = "a: &a {x: 1, y: 2}\n" + "".join(
    f"{name}: &{name} {{<<: [{', '.join([f'*{before}'] * 10)}]}}\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
ALIASES = "it has more than 5000 values and keys up to here, with those of aliases"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (LAUGHS, f":4:24: is not valid YAML: {ALIASES}"),
        (MERGES, f":4:49: is not valid YAML: {ALIASES}"),
        ("close: " + "[{" * 50_000, "is nested more than 30 levels deep"),
        ("- " * 50_000, "is nested more than 30 levels deep"),
        ("metrics: {enabled: [" + "a," * 60_000 + "]}", "has more than 5000 values and keys up to here"),
        ("close: {quiet: '" + "5" * 300_000 + "s'}", ": has more than 256 KiB; is it the right file?"),
        (
            "close: {quiet: 12:30:00}",
            'quiet: "12:30:00" is not a duration; write 10s, 15m or 24h',
        ),
        ("server: {grpc: 22:22}", ":1:16 server.grpc: 22:22 can be reached from other machines"),
        ("judge: {sample: 1:1.5}", '"1:1.5" is not a number'),
        ("close: {quiet: 1" + ":59" * 1000 + "}", "is not a duration"),
        ("close: {quiet: 5s, quiet: 6s}", "quiet is given twice; the first is in line 1"),
        ('close: {quiet: "\\ud83d"}', "it holds half of a character"),
        ("close: {7: 8}", ":1:9: is not valid YAML: 7 is not a key; put it in quotes"),
        ("late: {window: !duration 5m}", ":1:16: is not valid YAML: the tag !duration is not allowed"),
        ("late: &late {policy: *late}", ":1:22: is not valid YAML: it refers to itself"),
        ('close: {"\\ud83d": 5s}', "it holds half of a character"),
        ("{" + "a " * 50_000 + "}", "a a a a"),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else None,
)
def test_unsafe_or_ambiguous_yaml_is_refused_with_little_memory(tmp_path: Path, text: str, problem: str) -> None:
    path = _file(tmp_path, text)
    tracemalloc.start()
    try:
        problems = _problems(path, {})
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()
    assert problem in problems[0]
    assert problems[0].startswith(str(path))
    assert len(problems[0]) <= 2000


def test_a_device_or_a_too_large_file_is_an_error(tmp_path: Path) -> None:
    reason = "is a pipe or a device and no file; write what it gives into a file first"
    assert _problems(Path("/dev/zero"), {}) == [f"/dev/zero: cannot be read: {reason}"]
    large = _file(tmp_path, "#" * (256 << 10) + "\n")
    assert _problems(large, {}) == [f"{large}: has more than 256 KiB; is it the right file?"]


def test_a_value_can_be_reused_with_an_anchor(tmp_path: Path) -> None:
    path = _file(tmp_path, "close: &c {quiet: 5s}\nlate: {window: &w 1h}\nsession: {idle: *w}\n")
    assert load(path, {}).session.idle == 3600.0


@pytest.mark.parametrize(
    "server",
    [
        "{grpc: '0.0.0.0:4327', insecure_bind: true}",
        "{grpc: '0.0.0.0:4327', tls: {cert: a, key: b}, token_env: TOKEN}",
        "{grpc: '0.0.0.0:4327', tls: {cert: a, key: b, client_ca: c}}",
        "{health: '0.0.0.0:4329'}",
        "{grpc: 'localhost:4327', http: '[::1]:4328', health: '127.0.0.2:4329'}",
        "{grpc: '127.0.0.1:0', http: '127.0.0.1:0', health: '127.0.0.1:0'}",
    ],
)
def test_permitted_listener_addresses_are_accepted(tmp_path: Path, server: str) -> None:
    assert load(_file(tmp_path, f"server: {server}\n"), {}).server.http


def test_results_are_scraped_by_default_only_if_they_are_not_pushed() -> None:
    assert load(None, {}).exporters.scrape_results
    pushed = {"PANDAEVAL_EXPORTERS__OTLP__ENDPOINT": "backend:4317"}
    assert not load(None, pushed).exporters.scrape_results
    assert load(None, {**pushed, "PANDAEVAL_EXPORTERS__PROMETHEUS__RESULTS": "true"}).exporters.scrape_results
    off = load(None, {**pushed, "PANDAEVAL_EXPORTERS__OTLP__METRICS__ENABLED": "false"}).exporters
    assert off.otlp.endpoint_of("metrics") is None
    assert off.otlp.endpoint_of("traces") == "backend:4317"
    assert off.scrape_results


def test_a_config_is_immutable() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Config().close.quiet = 1.0
