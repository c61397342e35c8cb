"""Damages a killed collector's data, and checks that the next start reports it."""

from __future__ import annotations

import contextlib
import logging
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from pandaeval_collector.pipeline.timing import Timing
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_collector.store.checking import damages
from pandaeval_collector.store.connection import PAGE_BYTES, connect, note_damage
from pandaeval_collector.store.rows import ResultRow, checksum_of
from support.collector import standing
from support.database import open_database
from support.embedder import WordEmbedder
from support.made_traces import Composer
from support.stepped.life import Life
from support.stepped.loop import SteppedLoop
from support.stepped.outside import JudgeByHand
from support.stored import stored_spans

FILE, INDEX = "pandaeval.db", "pandaeval.db-shm"
STATES = ("early", "middle", "late")
_TRACES, _METRICS = 4, {"trace.loop_detection", "trace.coherence", "session.agent_consistency"}
_ROUNDS = 60
Results = dict[tuple[str, str], tuple[str, float | None]]
Harm = Callable[[Path, "Left", random.Random], None]


@dataclass(frozen=True, slots=True)
class Left:
    """A collector's data at three times. ``expected``: results without damage."""

    folder: Path
    acknowledged: dict[str, set[tuple[bytes, bytes]]]
    expected: dict[str, Results]


@dataclass(slots=True)
class Outcome:
    """Outcome of a damaged directory. ``how``: report; ``unnoticed`` without effect."""

    how: str
    problems: list[str] = field(default_factory=list)


def leave(folder: Path) -> Left:
    """Create the data: ``early``, ``middle`` and ``late``."""
    loop, composer = SteppedLoop(), Composer(3, sessions=2)
    life = _life(loop, folder / "data")
    _run(life, loop, life.start())
    span_keys: set[tuple[bytes, bytes]] = set()
    acknowledged: dict[str, set[tuple[bytes, bytes]]] = {}
    for state in STATES:
        for number in range(_TRACES):
            trace = composer.trace(3 + number)
            _run(life, loop, life.begin(life.pipeline.traces(trace.request().SerializeToString())))
            span_keys |= {(span.trace_id, span.span_id) for span in trace.spans}
            if number == _TRACES // 2:
                loop.advance(11.0)  # the traces sent so far are decided
                _commit(life, loop)
        if state == "middle":
            life.store.checkpoint()
        shutil.copytree(folder / "data", folder / state)
        acknowledged[state] = set(span_keys)
    life.bury()
    loop.close()
    expected: dict[str, Results] = {}
    for state in STATES:
        shutil.copytree(folder / state, folder / "whole")
        with _heard():
            _live(folder / "whole")
        expected[state] = _results(folder / "whole")
        shutil.rmtree(folder / "whole")
    return Left(folder, acknowledged, expected)


def try_one(left: Left, folder: Path, seed: int) -> tuple[str, Outcome]:
    """Damage a copy by seed in an empty ``folder``; return name and outcome."""
    chance = random.Random(seed)
    state, name = chance.choice(STATES), chance.choice([*HARMS])
    data = folder / "data"
    shutil.copytree(left.folder / state, data)
    HARMS[name](data, left, chance)
    named = _verified(folder, data)
    outcome = Outcome("unnoticed")
    with _heard() as heard:
        try:
            _live(data)
        except Exception as error:
            outcome.problems.append(f"the collector does not come up: {type(error).__name__}: {error}")
    words = " ".join(heard)
    for how, sign in _SIGNS.items():
        if sign in words:
            outcome.how = how
            break
    else:
        outcome.how = "verify" if named else "unnoticed"
    if not outcome.problems:
        outcome.problems += _wrong(data, left, state, outcome.how)
    return f"{state}: {name}", outcome


_SIGNS = {
    "put aside": "put aside",
    "row": "was damaged on disk",
    "set aside": "is quarantined",
    "damaged": "damaged",
}


def _wrong(data: Path, left: Left, state: str, how: str) -> list[str]:
    expected, found = left.expected[state], _results(data)
    problems = []
    wrong = [key for key, result in found.items() if result[1] is not None and expected.get(key) != result]
    if wrong and how != "put aside":
        first = min(wrong)
        problems.append(
            f"{len(wrong)} scores are not those of whole data, such as {first}: {found[first]} instead of "
            f"{expected.get(first)}, and it was {how}"
        )
    if how == "unnoticed":
        with open_database(data / FILE) as database:
            stored = stored_spans(database).keys()
        if lost := left.acknowledged[state] - stored:
            problems.append(f"{len(lost)} acknowledged spans are gone, and nobody said so")
        if found != expected:
            problems.append("other results than those of whole data, and nobody said so")
    return problems


# -- kinds of damage ---------------------------------------------------------------------------------------------


def _bits(name: str, most: int) -> Harm:
    def harm(data: Path, _: Left, chance: random.Random) -> None:
        content = bytearray((data / name).read_bytes())
        for _ in range(chance.randint(1, most) if content else 0):
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        (data / name).write_bytes(content)

    return harm


def _noise(name: str) -> Harm:
    def harm(data: Path, _: Left, chance: random.Random) -> None:
        content = bytearray((data / name).read_bytes())
        at, size = chance.randrange(max(1, len(content))), chance.choice((16, 512, 4096))
        content[at : at + size] = chance.randbytes(len(content[at : at + size]))
        (data / name).write_bytes(content)

    return harm


def _cut(name: str) -> Harm:
    def harm(data: Path, _: Left, chance: random.Random) -> None:
        content = (data / name).read_bytes()
        (data / name).write_bytes(content[: chance.randrange(len(content) + 1)])

    return harm


def _index_removed(data: Path, _: Left, __: random.Random) -> None:
    (data / INDEX).unlink()


def _pages_swapped(data: Path, _: Left, chance: random.Random) -> None:
    content = bytearray((data / FILE).read_bytes())
    pages = len(content) // PAGE_BYTES
    if pages > 1:
        one, two = (chance.randrange(pages) * PAGE_BYTES for _ in range(2))
        content[one : one + PAGE_BYTES], content[two : two + PAGE_BYTES] = (
            content[two : two + PAGE_BYTES],
            content[one : one + PAGE_BYTES],
        )
        (data / FILE).write_bytes(content)


def _row(table: str, column: str) -> Harm:
    def harm(data: Path, _: Left, chance: random.Random) -> None:
        with open_database(data / FILE) as database:
            rows = database.execute(f"SELECT rowid, {column} FROM {table} WHERE length({column}) > 0").fetchall()
            if not rows:
                return
            number, body = chance.choice(rows)
            changed = bytearray(body)
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
            database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (bytes(changed), number))

    return harm


def _rows_swapped(data: Path, _: Left, chance: random.Random) -> None:
    table, column = chance.choice((("chunks", "data"), ("members", "body"), ("results", "body")))
    with open_database(data / FILE) as database:
        rows = database.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
        if len(rows) > 1:
            (one, first), (two, second) = chance.sample(rows, 2)
            database.executemany(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", [(second, one), (first, two)])


HARMS: dict[str, Harm] = {
    "bits of the file": _bits(FILE, 8),
    "noise in the file": _noise(FILE),
    "noise in the index": _noise(INDEX),
    "file cut": _cut(FILE),
    "index removed": _index_removed,
    "pages swapped": _pages_swapped,
    "a byte of spans": _row("chunks", "data"),
    "a byte of a member": _row("members", "body"),
    "a byte of a result": _row("results", "body"),
    "rows swapped": _rows_swapped,
}


# -- a collector on the damaged data -----------------------------------------------------------------------------


def _life(loop: SteppedLoop, data: Path) -> Life:
    evaluator = Evaluator(WordEmbedder(), EvaluatorSettings(_METRICS))
    return Life(loop, data, evaluator, JudgeByHand([]), [], "here", Timing(upkeep=1e9))


def _live(data: Path) -> None:
    """Run a collector until it has no work left. Run it again if it suspects damage."""
    for _ in range(2):
        loop = SteppedLoop()
        try:
            try:
                life = _life(loop, data)
            except sqlite3.DatabaseError as error:
                if not note_damage(data / FILE, error):
                    raise
                life = _life(loop, data)
            try:
                _run(life, loop, life.start())
                for number in range(_ROUNDS):
                    _commit(life, loop)
                    with contextlib.suppress(sqlite3.DatabaseError):
                        if life.at_rest():
                            break
                    loop.advance(0.5 if number % 4 else 2000.0)
            finally:
                life.bury()
        except sqlite3.DatabaseError as error:
            if not note_damage(data / FILE, error):
                raise
        finally:
            loop.close()
        if not (data / f"{FILE}.suspected").exists():
            return


def _run(life: Life, loop: SteppedLoop, task: Any) -> None:
    for _ in range(_ROUNDS):
        loop.settle()
        if task.done():
            break
        life.commit()
    task.result()


def _commit(life: Life, loop: SteppedLoop) -> None:
    loop.settle()
    while life.store.waiting():
        life.commit()
        loop.settle()


def _verified(folder: Path, data: Path) -> bool:
    """Return whether ``pandaeval store verify`` reports a problem, on a copy."""
    if not (data / FILE).exists():
        return True
    copy = folder / "looked-at"
    shutil.copytree(data, copy)
    try:
        connection = connect(copy / FILE, "off", read_only=True)
        try:
            return any(True for _ in damages(connection))
        finally:
            connection.close()
    except sqlite3.Error:
        return True
    finally:
        shutil.rmtree(copy)


def _results(data: Path) -> Results:
    with open_database(data / FILE) as database:
        rows = []
        columns = "checksum, id, unit, metric, revision, body, counted, seq"
        for checksum, *row in database.execute(f"SELECT {columns} FROM results ORDER BY seq"):
            if checksum is not None and checksum != checksum_of(ResultRow(*row)):
                continue  # `pandaeval store verify` reports the row, and exporters skip it
            body = row[4]
            with contextlib.suppress(ValueError, KeyError, TypeError):  # the body may be damaged
                read = orjson.loads(body)
                standing([read])
                rows.append(read)
    return {key: (each["id"], each["score"]) for key, each in standing(rows).items()}


@contextlib.contextmanager
def _heard() -> Iterator[list[str]]:
    heard: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage() + (f" {record.exc_info[1]}" if record.exc_info else ""))

    logger, ear = logging.getLogger("pandaeval_collector"), Ear(logging.WARNING)
    logger.addHandler(ear)
    propagated, logger.propagate = logger.propagate, False
    try:
        yield heard
    finally:
        logger.removeHandler(ear)
        logger.propagate = propagated
