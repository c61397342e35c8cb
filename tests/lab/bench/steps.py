"""Which step broke a run: how often a model learned from few labels of steps names the right one.

    git clone https://github.com/mingyin1/Agents_Failure_Attribution ../who
    python tests/lab/bench/steps.py ../who [--seeds 15]

Takes the runs of Who&When (MIT; 126 and 58 failed runs of two systems of agents, each with the first wrong step, by
people). They become spans: a message is a model's call of its agent, what the terminal printed is a tool's call, failed
where its exit code is not 0. A seed cuts each set in halves; a model is fitted on 10 labels, then on 40 (or the 29 of
the smaller set's half), drawn from one half, and tried on the other, both ways. Beside it: a step at random, the first
step, the last step, the step before the first failure. "kept": the share of these models that ``learn steps`` would
keep; "kept, shuffled": the same where the wrong step is drawn at random within each run. Deterministic.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from lab.bench._table import table  # noqa: E402
from pandaeval_lab.labels.learning import LabelledRuns  # noqa: E402
from pandaeval_lab.labels.step_learning import fitted_on, labelled_steps, learn_steps, shares_of  # noqa: E402
from pandaeval_lab.replay.files import Input  # noqa: E402
from pandaeval_lab.replay.trace_files import TraceFiles  # noqa: E402

SETS = ("Algorithm-Generated", "Hand-Crafted")
_FAILED = re.compile(r"exitcode: [1-9]")
_START_NS = 1_790_000_000 * 10**9


def request(name: str, number: int, run: dict[str, Any]) -> tuple[str, str, str]:
    """OTLP/JSON of a run, its trace id, and the id of the span of its first wrong step."""
    trace_id, root = f"{SETS.index(name) + 1:016x}{number:016x}", f"{10**6 + number:016x}"
    spans = [_span(trace_id, root, "", 0, len(run["history"]) + 1, ("invoke_agent", "team"), run["question"], "")]
    for at, message in enumerate(run["history"]):
        agent = re.sub(r" \(.*", "", message.get("name") or message["role"])
        if agent != "human":
            what = (
                ("execute_tool", "terminal")
                if agent.replace("_", "").lower() == "computerterminal"
                else ("chat", agent)
            )
            spans.append(
                _span(trace_id, f"{number * 1000 + at + 1:016x}", root, at + 1, at + 2, what, "", message["content"])
            )
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    return body, trace_id, f"{number * 1000 + int(run['mistake_step']) + 1:016x}"


def _span(
    trace_id: str, id_: str, parent: str, start: int, end: int, what: tuple[str, str], asked: str, said: str
) -> dict[str, Any]:
    operation, name = what
    given = {"gen_ai.operation.name": operation}
    if operation == "execute_tool":
        given |= {"gen_ai.tool.name": name, "gen_ai.tool.call.result": said}
    else:
        given["gen_ai.agent.name"] = name
        for side, role, text in (("input", "user", asked), ("output", "assistant", said)):
            if text:
                message = [{"role": role, "parts": [{"type": "text", "content": text}]}]
                given[f"gen_ai.{side}.messages"] = json.dumps(message)
    failed = operation == "execute_tool" and _FAILED.search(said)
    return {
        "traceId": trace_id,
        "spanId": id_,
        "parentSpanId": parent,
        "name": f"{operation} {name}",
        "startTimeUnixNano": str(_START_NS + start * 10**9),
        "endTimeUnixNano": str(_START_NS + end * 10**9),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in given.items()],
        **({"status": {"code": 2}} if failed else {}),
    }


def labelled(folder: Path, name: str) -> LabelledRuns:
    """The runs of a set with their labels, as the product reads them."""
    files = sorted((folder / "Who&When" / name).glob("*.json"), key=lambda file: int(file.stem))
    made = [request(name, number, json.loads(file.read_text())) for number, file in enumerate(files, 1)]
    with tempfile.TemporaryDirectory() as place, TraceFiles() as run:
        written = Path(place) / "traces.otlp.jsonl"
        written.write_text("".join(f"{body}\n" for body, *_ in made))
        run.add_all(Input(str(written)).requests())
        [found] = labelled_steps(run.traces(), {trace_id: {span_id} for _, trace_id, span_id in made})
    return found


def some(sample: LabelledRuns, runs: Sequence[str], draw: np.random.Generator | None = None) -> LabelledRuns:
    """The sample's runs of these ids, in this order; with ``draw``, the wrong step of each is drawn at random."""
    at = [[at for at, group in enumerate(sample.groups) if group == run] for run in runs]
    wrong = [each[draw.integers(len(each))] for each in at] if draw else []
    flat = [place for each in at for place in each]
    return replace(
        sample,
        rows=[sample.rows[each] for each in flat],
        bad=[each in wrong if draw else sample.bad[each] for each in flat],
        groups=[sample.groups[each] for each in flat],
    )


def tried(sample: LabelledRuns, labels: int, seeds: int) -> tuple[float, float, float]:
    """Shares of held-out runs whose wrong step is named first, and among the first three, by models fitted on so many
    labels; and of models that would be kept."""
    places, kept, runs = [], [], [*dict.fromkeys(sample.groups)]
    for seed in range(seeds):
        drawn = [runs[at] for at in np.random.default_rng(seed).permutation(len(runs))]
        half = len(drawn) // 2
        for own, other in ((drawn[:half], drawn[half:]), (drawn[half:], drawn[:half])):
            model = fitted_on(sample, own[:labels])
            for shares, wrong in (shares_of(sample, run, model) for run in other):
                places.append(sum(each > shares[wrong] for each in shares))
            kept.append(not learn_steps(some(sample, own[:labels]))[1].refusal)
    return float(np.mean([at == 0 for at in places])), float(np.mean([at < 3 for at in places])), float(np.mean(kept))


def shuffled(sample: LabelledRuns, labels: int, times: int) -> float:
    """The share of models that would be kept where the wrong steps are drawn at random."""
    kept, draw, runs = [], np.random.default_rng(20), [*dict.fromkeys(sample.groups)]
    for _ in range(times):
        drawn = [runs[at] for at in draw.permutation(len(runs))[:labels]]
        kept.append(not learn_steps(some(sample, drawn, draw))[1].refusal)
    return float(np.mean(kept))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=15)
    asked = parser.parse_args()
    head = ("set", "runs", "named by", "first", "of three", "kept", "kept, shuffled")
    rows = []
    for name in SETS:
        sample = labelled(asked.folder, name)
        runs: dict[str, list[int]] = {}
        for at, run in enumerate(sample.groups):
            runs.setdefault(run, []).append(at)
        wrong = [next(at for at in its if sample.bad[at]) for its in runs.values()]
        chance = [float(np.mean([min(most, len(its)) / len(its) for its in runs.values()])) for most in (1, 3)]
        first = float(np.mean([at == its[0] for at, its in zip(wrong, runs.values(), strict=True)]))
        last = float(np.mean([at == its[-1] for at, its in zip(wrong, runs.values(), strict=True)]))
        failed = [next((at for at in its if sample.rows[at]["failed"]), None) for its in runs.values()]
        before = float(np.mean([failure == at + 1 for at, failure in zip(wrong, failed, strict=True)]))
        rows.append((name, str(len(runs)), "a step at random", f"{chance[0]:.2f}", f"{chance[1]:.2f}", "", ""))
        for baseline, share in (("first step", first), ("last step", last), ("step before the first failure", before)):
            rows.append(("", "", baseline, f"{share:.2f}", "", "", ""))
        for labels in (10, 40):
            used = min(labels, len(runs) // 2)
            one, three, kept = tried(sample, used, asked.seeds)
            by_chance = shuffled(sample, used, 10 * asked.seeds)
            rows.append(("", "", f"{used} labels", f"{one:.2f}", f"{three:.2f}", f"{kept:.2f}", f"{by_chance:.2f}"))
    print(table("The first wrong step", head, rows))


if __name__ == "__main__":
    main()
