"""``pandaeval drill --judge``: the price first, then a sample within the budget."""

from __future__ import annotations

import os

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._output import console, many, progress
from pandaeval_collector.config import Config
from pandaeval_collector.drill.drill import Drill
from pandaeval_collector.drill.judged import DrillForecast, JudgedDrill, JudgedSheet, chosen_copies
from pandaeval_collector.judge.call import CallFailedError
from pandaeval_collector.runs.settings import judge
from pandaeval_collector.scoring.evaluator import Evaluator


def asked(
    drill: Drill, settings: Config, scorer: Evaluator, copies: int, budget: float, dry: bool
) -> JudgedSheet | None:
    """Prints the price on standard error, then asks the judge about ``copies`` for at most ``budget`` US dollars and
    returns its verdicts; ``None`` where nobody is asked, as with ``dry``. Raises ``UserError``."""
    configured = judge(settings)
    assert configured is not None, "settings_of saw to it"
    judged = JudgedDrill(drill, scorer, configured, os.environ, budget)
    out = console(stderr=True)
    try:
        wanted = [*chosen_copies(drill.kept, copies)]
        paid, expected = judged.affordable(wanted)
        out.print(_price(expected, len(wanted), budget, dry))
        if dry or not paid:
            return None
        with progress(out, "judging") as on_done:
            return judged.sheet(paid, on_done)
    except CallFailedError as error:
        raise UserError(f"{settings.judge.model} cannot be asked ({error})") from error


def _price(expected: DrillForecast, wanted: int, budget: float, dry: bool) -> str:
    if not expected.copies:
        why = f"the budget of US$ {budget:g} suffices for none" if wanted else "no copy has a fault to be judged"
        return f"no judge is asked: {why}"
    cost = "at a price that is not known" if expected.usd is None else f"about US$ {expected.usd:.4f}"
    of = f" of {wanted}, for the budget of US$ {budget:g}" if expected.copies < wanted else ""
    told = f"{many(expected.calls, 'call')}, about {expected.tokens:,} tokens, {cost}"
    ends = "; nobody is asked: leave --dry-run out to ask" if dry else ""
    return f"{many(expected.copies, 'faulty run')}{of} and their originals: {told}{ends}"
