"""Runs mutmut on an area with its own tests.

    python tests/mutation/run.py result
    python tests/mutation/run.py store --most 400 --seed 1
    python tests/mutation/run.py              # all areas
    python tests/mutation/run.py --table      # the newest figures of each area, from the ledger

Needs the extra ``mutation``. Prints surviving mutants, except ``equivalent.toml``. ``--most`` tries a sample by
``--seed``, with a 95 % interval. Adds a ledger line per area. Exit code 1 below 95 %.

mutmut skips module values, class fields, decorated functions, annotations and docstrings.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE)]

from areas import AREAS, Area  # noqa: E402
from equivalents import Equivalents  # noqa: E402

LEAST = 0.95
_NOBODY = "no mutant has this name"
_CAUGHT = frozenset({"killed", "timeout", "segfault", "caught by type check"})


@dataclass(slots=True)
class Outcome:
    """``survived``: differences by mutant; ``drawn``: tried mutants of ``mutants``."""

    mutants: int
    drawn: int
    caught: int
    equivalent: int
    survived: dict[str, str] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """Return the caught share."""
        return self.caught / max(1, self.drawn - self.equivalent)


def main() -> int:
    options = _options()
    if options.table:
        print(table(options.ledger))
        return 0
    worst, commit = 1.0, _commit()
    for name in options.areas or AREAS:
        found = _tried(AREAS[name], options.most, options.seed, options.keep)
        _tell(name, found, options, commit)
        worst = min(worst, found.share)
    return int(worst < LEAST)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("areas", nargs="*", metavar="AREA", help=f"of {', '.join(AREAS)}")
    parser.add_argument("--most", type=int, help="try so many mutants of an area, drawn by the seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="leave the folder, for `mutmut show` and `mutmut browse`")
    parser.add_argument("--table", action="store_true", help="only print what the ledger says")
    parser.add_argument("--ledger", type=Path, default=HERE / "ledger.jsonl")
    options = parser.parse_args()
    if unknown := {*options.areas} - AREAS.keys():
        parser.error(f"no area: {', '.join(sorted(unknown))}")
    return options


def _tried(area: Area, most: int | None, seed: int, keep: bool) -> Outcome:
    folder = Path(tempfile.mkdtemp(prefix="pandaeval-mutation-"))
    try:
        _stage(folder, area)
        drawn: Sequence[str] = ()
        if most is not None:
            _mutmut(folder, "run", _NOBODY, may_fail=True)  # makes them all, and then finds none of that name
            names = sorted(_states(folder))
            drawn = random.Random(seed).sample(names, min(most, len(names)))
        _mutmut(folder, "run", "--max-children", "1", *drawn)
        states = _states(folder)
        return _outcome(folder, states, {name: states[name] for name in drawn} or states)
    finally:
        if keep:
            print(f"left in {folder}")
        else:
            shutil.rmtree(folder)


def _stage(folder: Path, area: Area) -> None:
    for part in ("collector/pandaeval_collector", "collector/pandaeval_lab", "pandaeval_otel", "tests"):
        shutil.copytree(ROOT / part, folder / Path(part).name, ignore=shutil.ignore_patterns("__pycache__"))
    packages = ("pandaeval_collector", "pandaeval_lab")
    sources = [f"{package}/{each}" for package in packages for each in area.sources if [*(folder / package).glob(each)]]
    tests = [f"tests/unit/{each}" for each in area.tests if (ROOT / "tests" / "unit" / each).exists()]
    settings = (
        '[tool.mutmut]\nsource_paths = ["pandaeval_collector", "pandaeval_lab"]\nalso_copy = ["pandaeval_otel"]\n'
        f"only_mutate = {json.dumps(sources)}\npytest_add_cli_args_test_selection = {json.dumps(tests)}\n"
        'pytest_add_cli_args = ["-p", "no:cacheprovider"]\nprocess_isolation = "forkserver"\n'
    )
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text() + settings)


def _mutmut(folder: Path, *arguments: str, may_fail: bool = False) -> str:
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    env["PYTHONPATH"] = os.pathsep.join(
        each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each and ROOT not in Path(each).parents
    )
    done = subprocess.run(
        [sys.executable, "-m", "mutmut", *arguments], cwd=folder, env=env, capture_output=True, text=True
    )
    if done.returncode and not may_fail:
        raise SystemExit(f"mutmut {arguments[0]} failed in {folder}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def _states(folder: Path) -> dict[str, str]:
    """Return each mutant's state by name."""
    lines = _mutmut(folder, "results", "--all", "true").splitlines()
    pairs = (line.strip().partition(": ") for line in lines if ": " in line)
    return {name: state for name, _, state in pairs}


def _outcome(folder: Path, all_: Mapping[str, str], tried: Mapping[str, str]) -> Outcome:
    known = Equivalents(HERE / "equivalent.toml")
    found = Outcome(len(all_), len(tried), sum(state in _CAUGHT for state in tried.values()), 0)
    missed = {name: state for name, state in tried.items() if state not in _CAUGHT}
    for name, difference in _differences(folder, [*missed]).items():
        if known.has(_function(name), difference):
            found.equivalent += 1
        else:
            found.survived[name] = f"{missed[name]}\n{difference}"
    return found


def _differences(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Return each mutant's difference, in batches."""
    show = (
        "import json, sys; from mutmut.mutation.diff_apply import get_diff_for_mutant as told;"
        "print(json.dumps({name: told(name) for name in json.load(sys.stdin)}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", show], cwd=folder, input=json.dumps(names), capture_output=True, text=True, check=True
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


def _function(name: str) -> str:
    """Return the function of a mutant's name."""
    module, _, function = name.removeprefix("pandaeval_collector.").rpartition(".")
    function = function.rpartition("__mutmut_")[0].removeprefix("x")
    return f"{module}.{function.strip('ǁ').replace('ǁ', '.') if 'ǁ' in function else function.removeprefix('_')}"


def _wilson(caught: int, tried: int) -> tuple[float, float]:
    z, share = 1.96, caught / tried
    middle, spread = share + z * z / (2 * tried), z * math.sqrt(share * (1 - share) / tried + z * z / (4 * tried**2))
    return (middle - spread) / (1 + z * z / tried), (middle + spread) / (1 + z * z / tried)


def _tell(name: str, found: Outcome, options: argparse.Namespace, commit: str) -> None:
    for mutant, difference in found.survived.items():
        print(f"\n== {_function(mutant)} ({mutant}): {difference}")
    low, high = _wilson(found.caught, max(1, found.drawn - found.equivalent))
    line = {
        "area": name,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit,
        "mutants": found.mutants,
        "tried": found.drawn,
        "caught": found.caught,
        "equivalent": found.equivalent,
        "survived": len(found.survived),
        "share": round(found.share, 4),
    }
    if found.drawn < found.mutants:
        line |= {"seed": options.seed, "low": round(low, 4), "high": round(high, 4)}
    print(json.dumps(line))
    with options.ledger.open("a") as ledger:
        ledger.write(json.dumps(line) + "\n")


def table(ledger: Path) -> str:
    """Return each area's newest line in Markdown."""
    newest = {
        line["area"]: line for line in map(json.loads, ledger.read_text().splitlines() if ledger.exists() else ())
    }
    rows = [
        "| area | mutants | tried | caught | equivalent | survived | share | commit |",
        "|---|--:|--:|--:|--:|--:|---|---|",
    ]
    for name, line in sorted(newest.items()):
        counts = " | ".join(str(line[key]) for key in ("mutants", "tried", "caught", "equivalent", "survived"))
        sampled = f" ({line['low']:.1%} to {line['high']:.1%}, seed {line['seed']})" if "seed" in line else ""
        rows.append(f"| {name} | {counts} | {line['share']:.1%}{sampled} | `{line['commit']}` |")
    return "\n".join(rows)


def _commit() -> str:
    done = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
