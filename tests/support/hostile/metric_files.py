"""YAML metric and case files that hang, use too much memory or mislead."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

_CLI = "from pandaeval_collector.cli import main; main()"
_TRACES = str(Path(__file__).parents[2] / "golden" / "captures" / "langgraph_genai" / "good.otlp.jsonl")
_RSS_BYTES, _MOST_S = 512 << 20, 30.0
_REGEXES = (r"^(\w+\.?)+@example\.org$", "(a*)*b", "(" * 5000 + ")" * 5000, "a{1,1000}{1,1000}{1,1000}", r"(.)\1+", "[")


def growing(folder: Path, scale: int) -> Iterator[str]:
    """Check that ``config check`` and ``evaluate --cases`` reject each quickly and clearly."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "config.yaml"
    for name, file in _metric_files(folder, scale).items():
        config.write_text(f"metrics: {{modules: [{file}]}}\n")
        yield from _refused(folder, f"metrics: {name}", "config", "check", str(config))
    for name, file in _case_files(folder, scale).items():
        yield from _refused(folder, f"cases: {name}", "evaluate", _TRACES, "--cases", str(file))


def _bombs(scale: int) -> Mapping[str, str]:
    names = "abcdefghijklmnopqrstuvwxyz"[: 9 + scale]
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in itertools.pairwise(names)
    )
    return {
        "an alias bomb": bomb,
        "a value that holds itself": "metrics: &a [*a]\n",
        "nesting": "metrics: " + "[" * (20_000 * scale) + "]" * (20_000 * scale),
        "maps in maps": "".join(f"{' ' * depth}a:\n" for depth in range(700 * min(scale, 3))),
        "a tag of Python's": "metrics: !!python/object/apply:os.system ['touch owned']\n",
        "no text": "\x00\xff\x07",
    }


def _metric_files(folder: Path, scale: int) -> Mapping[str, Path]:
    long = "x" * (900_000)
    texts = {
        **_bombs(scale),
        "a long name": f"name: {long}\ncriteria: c\nscale: {{min: 0, max: 1}}\n",
        "many labels": "name: a\ncriteria: c\nlabels:\n"
        + "".join(f"  l{number}: {number % 2}\n" for number in range(50_000)),
        "many metrics": "".join(f"- {{name: m{number % 7}}}\n" for number in range(40_000)),
    }
    found = _written(folder, "metrics", texts)
    found["100 MB"] = folder / "large.yaml"
    with found["100 MB"].open("wb") as large:
        large.truncate((100 << 20) * scale)
    found["a file that never ends"] = folder / "endless.yaml"
    found["a pipe that nobody writes to"] = folder / "pipe.yaml"
    with contextlib.suppress(FileExistsError):
        found["a file that never ends"].symlink_to("/dev/zero")
        os.mkfifo(found["a pipe that nobody writes to"])
    return found


def _case_files(folder: Path, scale: int) -> Mapping[str, Path]:
    texts = {**_bombs(scale)}
    for number, pattern in enumerate(_REGEXES):
        quoted = pattern.replace("'", "''")
        case = f"- {{name: 'c', input: 'q', expected: {{output: {{matches: '{quoted}'}}}}, surplus: 1}}\n"
        texts[f"expression {number}"] = case * scale
    return _written(folder, "cases", texts)


def _written(folder: Path, kind: str, texts: Mapping[str, str]) -> dict[str, Path]:
    found = {}
    for number, (name, text) in enumerate(texts.items()):
        found[name] = folder / f"{kind}-{number}.yaml"
        found[name].write_text(text, encoding="latin-1")
    return found


def _refused(folder: Path, what: str, *arguments: str) -> Iterator[str]:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    outside = {key: value for key, value in os.environ.items() if not key.startswith("PANDAEVAL")}
    output_file = folder / "said"
    began = time.monotonic()
    with output_file.open("wb") as file:
        streams = [(os.POSIX_SPAWN_DUP2, file.fileno(), number) for number in (1, 2)]
        command = ["timeout", "900", sys.executable, "-c", _CLI, *arguments]
        pid = os.posix_spawnp("timeout", command, outside | {"PYTHONPATH": path}, file_actions=streams)
    _, status, used = os.wait4(pid, 0)
    code, seconds, text = (
        os.waitstatus_to_exitcode(status),
        time.monotonic() - began,
        output_file.read_text(errors="replace"),
    )
    if code != 2 or "Traceback" in text or not text.strip():
        yield f"{what}: exit code {code}: {text[-300:]}"
    if len(text) > 20_000:
        yield f"{what}: {len(text):,} characters are said"
    if used.ru_maxrss << 10 > _RSS_BYTES:
        yield f"{what}: it took {used.ru_maxrss >> 10} MiB"
    if used.ru_utime + used.ru_stime > _MOST_S:
        yield f"{what}: it took {used.ru_utime + used.ru_stime:.0f} s of the processor, {seconds:.0f} s in all"
