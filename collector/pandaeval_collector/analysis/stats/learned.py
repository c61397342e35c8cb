"""What was learned of one agent from labels, as a file of JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pandaeval_collector.analysis.stats.problem_model import HeldOutFigures, ProblemModel
from pandaeval_collector.analysis.stats.separation import ShareEstimate

FORMAT = 1


@dataclass(frozen=True, slots=True)
class LearnedModel:
    """``level``: ``session``, or ``trace`` for traces without one; ``source``: whose verdicts, ``people`` or a judge's
    model; ``metric``: the key of what they are about."""

    level: str
    agent: str
    source: str
    metric: str
    model: ProblemModel
    evidence: HeldOutFigures

    @property
    def version(self) -> str:
        """8 hex digits of all that a probability depends on."""
        return hashlib.blake2b(json.dumps(self.model.to_dict()).encode(), digest_size=4).hexdigest()

    def to_json(self) -> str:
        """Writes the model as :meth:`of_json` reads it."""
        held = {"format": FORMAT, "version": self.version, **asdict(self)}
        return json.dumps(held, indent=1) + "\n"

    @classmethod
    def of_json(cls, text: str | bytes) -> LearnedModel:
        """Reads a model. Raises ``ValueError`` for what :meth:`to_json` did not write."""
        try:
            held = json.loads(text)
            if held["format"] != FORMAT:
                raise ValueError(f"it has format {held['format']}, and this version reads {FORMAT}: learn anew")
            names = {name: str(held[name]) for name in ("level", "agent", "source", "metric")}
            return cls(**names, model=ProblemModel.of_dict(held["model"]), evidence=_evidence(held["evidence"]))
        except (KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"no model that `pandaeval learn` wrote ({error})") from error


def _evidence(held: Mapping[str, Any]) -> HeldOutFigures:
    shares = {name: None if held[name] is None else ShareEstimate(**held[name]) for name in ("auroc", "same_length")}
    return HeldOutFigures(**{**held, **shares})
