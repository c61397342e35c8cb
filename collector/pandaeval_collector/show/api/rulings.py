"""Operations on questions to the agent's owner, and on rulings that answer them."""

from __future__ import annotations

import asyncio
import datetime
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import FastAPI, Response
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from pandaeval_collector.analysis.embedding import Embedder, load
from pandaeval_collector.base.errors import UserError
from pandaeval_collector.judge.rulings import MOST_CHARS, Ruling
from pandaeval_collector.runs.manager import EvaluationRuns
from pandaeval_collector.runs.rulings_file import read_rulings, rulings_path, write_rulings
from pandaeval_collector.runs.spec import RunSpec
from pandaeval_collector.show.api.problems import WRITES, ProblemError
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.run_shapes import DryRun, RunShape
from pandaeval_collector.show.api.runs import run_errors_as_problems
from pandaeval_collector.store.correctness import StandingVerdict, read_verdicts
from pandaeval_collector.store.live_groups import NEAR
from pandaeval_collector.store.runs import RunTable

_MOST_QUESTIONS, _EXAMPLES, _REMEMBERED = 200, 5, 4096
_DECIDED, _LABELLED = 20, 50
"""Maximum additional decided and labelled runs on which a ruling is tried."""


class ExampleRun(BaseModel):
    """A run whose verdict depends on a question."""

    trace_id: str
    session_id: str | None


class OpenQuestion(BaseModel):
    """A question to the agent's owner.

    ``wordings``: other wordings. ``runs``: dependent verdicts. ``examples``: newest runs.
    """

    id: str
    question: str
    wordings: list[str]
    runs: int
    agents: list[str]
    examples: list[ExampleRun]


class OpenQuestions(BaseModel):
    """The open questions, most runs first."""

    items: list[OpenQuestion]


class RulingList(BaseModel):
    """The rulings in the file ``path``."""

    path: str
    items: list[Ruling]


class RulingTrial(BaseModel):
    """A ruling to try on the runs of a question, and on some labelled and decided runs."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[
        str, Field(min_length=1, max_length=MOST_CHARS, description="The ruling, a sentence that the judge follows.")
    ]
    question: Annotated[str, Field(max_length=40, description="ID of the question. If empty, all questions.")] = ""
    agent: Annotated[str, Field(max_length=200, description="Name of the agent. If empty, all agents.")] = ""
    author: Annotated[str, Field(max_length=200)] = "people"
    budget_usd: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] | None = None
    dry_run: Annotated[bool, Field(description="Only estimate calls, tokens and cost.")] = False


class NewRuling(BaseModel):
    """A ruling that an evaluation run tested and that is now kept."""

    model_config = ConfigDict(extra="forbid")
    run: Annotated[str, Field(max_length=64, description="ID of the run that tried the ruling.")]


class KeptRuling(BaseModel):
    """A ruling in force. ``again``: units that are judged again from the run's answers."""

    ruling: Ruling
    again: int


@dataclass(slots=True)
class _Group:
    wordings: Counter[str] = field(default_factory=Counter)
    verdicts: list[StandingVerdict] = field(default_factory=list)

    @property
    def question(self) -> str:
        return self.wordings.most_common(1)[0][0]

    def shown(self) -> OpenQuestion:
        first, *others = [text for text, _ in self.wordings.most_common()]
        return OpenQuestion(
            id=_id(first),
            question=first,
            wordings=others[:_EXAMPLES],
            runs=len(self.verdicts),
            agents=sorted({each.agent for each in self.verdicts}),
            examples=[
                ExampleRun(trace_id=each.trace_id, session_id=each.session_id) for each in self.verdicts[:_EXAMPLES]
            ],
        )


def _id(question: str) -> str:
    return hashlib.blake2b(question.encode(), digest_size=4).hexdigest()


@cache
def _embedder() -> Embedder:
    return load("embedded")


@lru_cache(_REMEMBERED)
def _vector(text: str) -> NDArray[np.float32]:
    return next(iter(_embedder().embed([text])))


def _alike(first: str, second: str) -> bool:
    return float(_vector(first) @ _vector(second)) >= NEAR


def grouped(verdicts: Sequence[StandingVerdict]) -> list[_Group]:
    groups: list[_Group] = []
    for text, times in Counter(each.question for each in verdicts if each.question).most_common(_MOST_QUESTIONS):
        group = next((each for each in groups if _alike(each.question, text)), None)
        if group is None:
            groups.append(group := _Group())
        group.wordings[text] = times
        group.verdicts += [each for each in verdicts if each.question == text]
    return sorted(groups, key=lambda group: -len(group.verdicts))


def question_routes(app: FastAPI, reads: Reads) -> None:
    @reads.operation(app, "/questions", "Unanswered questions for the agent's owner, sorted by number of runs")
    def questions() -> OpenQuestions:
        return OpenQuestions(items=[group.shown() for group in grouped(read_verdicts(reads.finder))])


class RulingWork:
    """Answers the operations on rulings. Only these operations and people write the file."""

    def __init__(self, reads: Reads, stored: RunTable, runs: EvaluationRuns) -> None:
        self._reads, self._stored, self._runs = reads, stored, runs

    @property
    def _path(self) -> Path:
        return rulings_path(self._runs.config)

    def listed(self) -> RulingList:
        return RulingList(path=str(self._path), items=read_rulings(self._path))

    async def attempt(self, asked: RulingTrial, response: Response) -> RunShape | DryRun:
        with run_errors_as_problems():
            spec = await self._reads.run(lambda: _trial(asked, read_verdicts(self._reads.finder)))
            if asked.dry_run:
                return DryRun(**asdict(await self._runs.dry(spec)))
            response.status_code = 201
            return RunShape.of(await self._runs.submit(spec))

    async def keep(self, asked: NewRuling) -> KeptRuling:
        """Keep the ruling that a run tested, and judge the units of the run again."""
        run = await self._reads.run(lambda: self._stored.find(asked.run))
        tried = None if run is None else RunSpec.from_json(run.body).ruling
        if run is None or tried is None:
            raise ProblemError(404, f"no run {asked.run} tried a ruling")
        ruling = _ruling(tried)
        with run_errors_as_problems():
            others = [each for each in read_rulings(self._path) if each.id != ruling.id]
            write_rulings([*others, ruling], self._path)
        again = await asyncio.wrap_future(self._runs.store.runs.judge_again(run.no))
        return KeptRuling(ruling=ruling, again=again)

    async def remove(self, ruling_id: str) -> None:
        with run_errors_as_problems():
            held = read_rulings(self._path)
            kept = [each for each in held if each.id != ruling_id]
            if len(kept) == len(held):
                raise ProblemError(404, f"there is no ruling {ruling_id} in {self._path}")
            write_rulings(kept, self._path)


def ruling_routes(app: FastAPI, reads: Reads, stored: RunTable, runs: EvaluationRuns) -> None:
    work = RulingWork(reads, stored, runs)
    reads.operation(app, "/rulings", "Rulings of the agents' owners", tagged=False)(work.listed)
    summary = "Show the effect of a ruling on verdicts, or estimate the cost"
    app.post("/rulings/try", response_model=RunShape | DryRun, responses=WRITES, summary=summary)(work.attempt)
    summary = "Save a ruling, and judge the runs of its trial again"
    app.post("/rulings", response_model=KeptRuling, status_code=201, responses=WRITES, summary=summary)(work.keep)
    app.delete("/rulings/{ruling_id}", status_code=204, responses=WRITES, summary="Remove a ruling")(work.remove)


def _trial(asked: RulingTrial, verdicts: Sequence[StandingVerdict]) -> RunSpec:
    groups = [each for each in grouped(verdicts) if not asked.question or asked.question in map(_id, each.wordings)]
    of_agent = [each for each in verdicts if asked.agent in ("", each.agent)]
    open_ = [each for group in groups for each in group.verdicts if each in of_agent]
    if not open_:
        raise ProblemError(404, f"no unclear run depends on a question (ID: {asked.question or 'any'})")
    labelled = [each for each in of_agent if each.labelled][:_LABELLED]
    decided = [each for each in of_agent if each.passed is not None][:_DECIDED]
    chosen = {(each.no, each.metric) for each in (*open_, *labelled, *decided)}
    question = groups[0].question if asked.question else ""
    ruling = _ruling({"text": asked.text, "agent": asked.agent, "author": asked.author, "question": question})
    return RunSpec(
        metrics=tuple(sorted({metric for _, metric in chosen})),
        about=tuple(sorted(no for no, _ in chosen)),
        ruling=ruling.model_dump(mode="json"),
        name=f"ruling: {asked.text}"[:200],
        budget_usd=asked.budget_usd,
    )


def _ruling(given: Mapping[str, Any]) -> Ruling:
    if not str(given.get("text", "")).strip():
        raise UserError("text: write the sentence that the judge should follow")
    today = datetime.datetime.now(datetime.UTC).date()
    return Ruling.model_validate({"date": today, **given})
