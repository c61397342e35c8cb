"""Tries guidelines for a judge against people's labels, and says which one is proven to bring it nearer to them.

The labelled runs are parted by session into two halves. On the first the judge's errors are seen, guidelines are
proposed, and each candidate is tried as a judge in the shadow of the present one; the best of them that gains anything
is tried once more on the other half, which nothing was chosen by. It is proven if the interval of its gain there lies
above zero.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import Field

from pandaeval_collector.analysis.stats.corrected_rate import Labelled, label_rate
from pandaeval_collector.base.result import Result
from pandaeval_collector.config import Config
from pandaeval_collector.jobs.same_cause import fenced
from pandaeval_collector.judge.guidelines import MOST_CHARS, Guideline
from pandaeval_collector.judge.pack import Pack
from pandaeval_collector.judge.rubric import Reason, Rubric, Verdict
from pandaeval_collector.judge.sanitize import neutral, one_line
from pandaeval_collector.judge.shorten import elided
from pandaeval_collector.pipeline.line.understanding import ScoredTrace
from pandaeval_collector.runs.front import close_rules
from pandaeval_collector.runs.settings import judge, scoring
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_lab.replay.files import BadLine, Request
from pandaeval_lab.replay.judge import ReplayJudge, capped
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles

LEAST = 40
"""Labelled runs below which nothing is tried: of half of them no gain could be proven."""


@dataclass(frozen=True, slots=True)
class LabelledRun:
    """A run with people's verdict: whether they pass it, and what they wrote."""

    unit: str
    passed: bool
    session: str = ""
    comment: str = ""

    @property
    def held_out(self) -> bool:
        """Whether the run is in the half that no guideline is chosen by; a session's runs stay together."""
        return hashlib.blake2b(f"held out {self.session or self.unit}".encode(), digest_size=1).digest()[0] % 2 == 1


@dataclass(frozen=True, slots=True)
class JudgedUnit:
    """What a judge said of a run: whether it passes (``None``: no verdict), and why."""

    passed: bool | None
    reason: str = ""


Judging = Callable[[str, Sequence[LabelledRun]], Mapping[str, JudgedUnit]]
"""Judges runs with one more guideline (``""``: none); returns what is said, by unit."""
Proposing = Callable[[Sequence[tuple[LabelledRun, JudgedUnit]]], Sequence[str]]
"""Proposes guidelines for runs that the judge got wrong."""


@dataclass(frozen=True, slots=True)
class TriedGuideline:
    """A guideline and what it changed. ``seen``: its gain on the half by which it was chosen; ``held_out``: on the
    other half, if tried there. ``why``: what keeps it from being adopted; ``""`` for one that is proven."""

    text: str
    source: str
    seen: VerdictChange
    held_out: VerdictChange | None = None
    why: str = ""


@dataclass(slots=True)
class Alignment:
    """The outcome of all guidelines that were tried. ``errors``: how many of the ``seen`` runs of the first half the
    judge gets wrong now."""

    runs: int
    seen: int
    errors: int
    tried: list[TriedGuideline] = field(default_factory=list)

    @property
    def proven(self) -> TriedGuideline | None:
        """The guideline whose gain is proven, if any."""
        return next((each for each in self.tried if not each.why), None)


def align(
    runs: Sequence[LabelledRun],
    judging: Judging,
    written: Sequence[str] = (),
    proposing: Proposing = lambda errors: (),
    room: Callable[[int], bool] = lambda runs: True,
) -> Alignment:
    """Tries guidelines on one half of the runs and the best one on the other half. ``written``: candidates of people.
    ``room`` says whether the budget pays for that many more verdicts; a guideline without room is skipped. Raises
    ``ValueError`` for fewer than :data:`LEAST` runs."""
    if len(runs) < LEAST:
        raise ValueError(f"takes {LEAST} labelled runs with a verdict, and there are {len(runs)}")
    now = judging("", runs)
    seen, other = ([run for run in runs if run.held_out == half] for half in (False, True))
    errors = [(run, now[run.unit]) for run in seen if run.unit in now and now[run.unit].passed is not run.passed]
    found = Alignment(len(runs), len(seen), len(errors))
    proposed = [(text, "judge") for text in proposing(errors)] if errors else []
    for text, source in [*((text, "people") for text in written), *proposed]:
        if room(len(seen) + len(other)):
            change = _change(seen, now, judging(text, seen))
            found.tried.append(TriedGuideline(text, source, change, why="not the best of those that were tried"))
    best = max(range(len(found.tried)), key=lambda at: found.tried[at].seen.gain, default=None)
    if best is None:
        return found
    tried = found.tried[best]
    if tried.seen.gain <= 0:
        found.tried[best] = replace(tried, why="no gain where it was tried")
    else:
        change = _change(other, now, judging(tried.text, other))
        why = "" if change.proven else "no gain is proven on the labels that it was not chosen by"
        found.tried[best] = replace(tried, held_out=change, why=why)
    return found


def _change(
    runs: Sequence[LabelledRun], now: Mapping[str, JudgedUnit], then: Mapping[str, JudgedUnit]
) -> VerdictChange:
    nothing = JudgedUnit(None)
    before, after = ([said.get(run.unit, nothing).passed is run.passed for run in runs] for said in (now, then))
    return verdict_change(before, after, [run.session or run.unit for run in runs])


# Is another way of judging the same runs nearer to people?
#
# Of runs that both judge rightly, or both wrongly, nothing is learnt. Of the others it is asked how many the new way
# gets right: with a rate of one half the two are equally good. The interval is that of a rate by labels alone (Wilson's
# with the effective number of sessions and Student's quantile), so that a handful of runs proves nothing: seven of
# seven do, six of six do not.
@dataclass(frozen=True, slots=True)
class VerdictChange:
    """A comparison of two ways of judging ``n`` labelled runs. ``before`` and ``after``: how many were judged as people
    do; ``differ``: on how many only one way was right. ``low`` to ``high``: 95 % interval of the gain in that share;
    ``None`` where it cannot be told."""

    n: int
    before: int
    after: int
    differ: int
    low: float | None
    high: float | None

    @property
    def gain(self) -> float:
        return (self.after - self.before) / self.n

    @property
    def proven(self) -> bool:
        """Whether the new way is credibly better."""
        return self.low is not None and self.low > 0.0


def verdict_change(before: Sequence[bool], after: Sequence[bool], clusters: Sequence[object]) -> VerdictChange:
    """Compares two ways of judging. ``before``, ``after``: by run, of which there is one at least, whether it was
    judged as people do; ``clusters``: its session."""
    n = len(before)
    apart = [at for at in range(n) if before[at] != after[at]]
    found = VerdictChange(n, sum(before), sum(after), len(apart), None, None)
    if len(apart) < 2:
        return found
    better = [float(after[at]) for at in apart]
    rate = label_rate(Labelled.of(better, better, None, [clusters[at] for at in apart]))
    low, high = ((2.0 * end - 1.0) * len(apart) / n for end in (rate.low, rate.high))
    return VerdictChange(n, found.before, found.after, len(apart), low, high)


# The question by which a judge's model proposes guidelines: what would have made it say what people say?
MOST = 5
"""Guidelines that are proposed at once."""
_MOST_SHOWN, _MOST_SAID = 60, 400
_HEAD = "## Runs of which people say something else than the judge said"
Proposal = Annotated[str, Field(min_length=1, max_length=MOST_CHARS)]


class Proposals(Verdict):
    """``guidelines``: what the judge should heed from now on."""

    reason: Reason = Field(description="What the judge's errors have in common, in one to three sentences.")
    guidelines: Annotated[list[Proposal], Field(max_length=MOST)] = Field(
        description="Each one or two sentences, the one that would put most right first."
    )


def proposing_rubric(question: str) -> Rubric[Proposals]:
    """Makes the rubric that asks for guidelines. ``question``: that of the metric."""
    return Rubric(
        name="guidelines",
        version="1",
        text=f"""
A judge was asked of recorded runs: "{question}" The record lists runs that it judged wrongly: what people say of each,
with their comment where they wrote one, and what the judge said.

Which guidelines would make the judge say what people say? A guideline is a general rule for runs that nobody has seen
yet: it says what evidence to look for, and what follows from it. It names no single run, no person and no number of
this list, and it does not ask for a verdict as such ("be stricter").

Example: of runs that people fail since "the refund was never made", and that the judge passes since "the agent says
that it was refunded", a good guideline is: "A change counts as made only if the result of a call says so; that the
agent says so is not enough."
""",
        verdict=Proposals,
        max_tokens=1500,
    )


def disagreements(errors: Sequence[tuple[LabelledRun, JudgedUnit]]) -> Pack:
    """Writes the record of runs that judge and people disagree on, which the model is shown. All of it came from runs,
    people or judges that read runs, and is fenced."""
    return fenced((_HEAD, "\n".join(f"{n}. {_line(*each)}" for n, each in enumerate(errors[:_MOST_SHOWN], 1))))


def _line(run: LabelledRun, judged: JudgedUnit) -> str:
    comment = f' ("{elided(run.comment, _MOST_SAID)}")' if run.comment else ""
    said = "no verdict" if judged.passed is None else "pass" if judged.passed else "fail"
    about = (
        f"people: {'pass' if run.passed else 'fail'}{comment}; the judge: {said}, {elided(judged.reason, _MOST_SAID)}"
    )
    return one_line(neutral(about))


def plain(text: str) -> str:
    """Cleans a proposal for use in a question: one line, without what looks like a fence."""
    return one_line(neutral(text))[:MOST_CHARS]


OnJudged = Callable[[int, int], None]


@dataclass
class FileJudging:
    """Judges one metric (its key) of the runs in ``requests``. ``agent``: the agent that a guideline is for, ``""`` for
    all; ``usd``: the most that all judging may cost."""

    config: Config
    requests: Sequence[Request | BadLine]
    metric: str
    agent: str
    environ: Mapping[str, str]
    usd: float | None = None
    on_judged: OnJudged = lambda done, total: None
    spent: float = 0.0
    verdicts: int = 0
    _evaluators: dict[str, Evaluator] = field(default_factory=dict)

    def first(self, units: Mapping[str, object]) -> dict[str, Result]:
        """Returns the results that the judge, without a further guideline, gives these units."""
        return self._results("", set(units))

    def __call__(self, text: str, runs: Sequence[LabelledRun]) -> dict[str, JudgedUnit]:
        """Returns what the judge says of ``runs`` when it heeds the guideline ``text`` too."""
        return {unit: judged(each) for unit, each in self._results(text, {run.unit for run in runs}).items()}

    def room(self, verdicts: int) -> bool:
        """Returns whether the budget pays for ``verdicts`` more, at the mean cost of those so far."""
        each = self.spent / self.verdicts if self.verdicts else 0.0
        return self.usd is None or self.spent + verdicts * each <= self.usd

    def score(self, text: str, files: TraceFiles, where: Callable[[ScoredTrace], bool] | None) -> Iterator[Result]:
        """Yields the results of ``files``, by a judge that heeds the guideline ``text`` too."""
        config = judge(self.config)
        assert config is not None
        config = capped(config, None if self.usd is None else self.usd - self.spent)
        scorer = self.evaluator(text)
        with ReplayJudge(files.store, scorer, config, self.environ, on_judged=self.on_judged) as asked:
            yield from replay(files, scorer, asked, where=where)

    def evaluator(self, text: str) -> Evaluator:
        """Returns an evaluator of this metric alone, whose judge heeds the guideline ``text`` too."""
        if text not in self._evaluators:
            from pandaeval_collector.analysis.embedding import load

            settings = scoring(self.config)
            assert settings.judge is not None
            more = (Guideline(self.metric, text, self.agent),) if text else ()
            asked = replace(settings.judge, guidelines=(*settings.judge.guidelines, *more))
            settings = replace(settings, enabled=frozenset({self.metric}), judge=asked)
            embedder = next((each.embedder for each in self._evaluators.values()), None) or load(
                self.config.embedding.model
            )
            self._evaluators[text] = Evaluator(embedder, settings)
        return self._evaluators[text]

    def _results(self, text: str, units: set[str]) -> dict[str, Result]:
        def where(run: ScoredTrace) -> bool:
            of_turn = any(unit.startswith(f"{run.unit.trace_id}:") for unit in units)
            return of_turn or run.unit.trace_id in units or (run.unit.session_id or "") in units

        found: dict[str, Result] = {}
        with TraceFiles(close_rules(self.config)) as files:
            files.add_all(self.requests)
            for result in self.score(text, files, where):
                self.spent += result.cost_usd
                unit = result.unit
                if f"{unit.level}.{result.metric}" == self.metric and unit.id in units:
                    found[unit.id] = result
        self.verdicts += len(found)
        return found


def judged(result: Result) -> JudgedUnit:
    """Reduces a result to the judge's verdict and reason, for a comparison with people."""
    return JudgedUnit(result.success if result.outcome == "scored" else None, result.finding.reason)
