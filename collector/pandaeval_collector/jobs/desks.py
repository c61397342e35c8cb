"""Makes desks: each asks with the language and the parameters of calls that are configured."""

from __future__ import annotations

from dataclasses import dataclass

from pandaeval_collector.judge.call import Caller
from pandaeval_collector.judge.desk import Desk, Memory
from pandaeval_collector.scoring.evaluator import JudgeSettings


@dataclass(frozen=True, slots=True)
class Desks:
    """``judge``: the settings; ``None``: the defaults."""

    caller: Caller
    judge: JudgeSettings | None = None

    @property
    def secrets(self) -> bool:
        """Whether secrets are redacted in what is given with a question."""
        return self.judge is None or self.judge.secrets

    def desk(self, memory: Memory) -> Desk:
        """A desk that remembers in ``memory``."""
        if self.judge is None:
            return Desk(self.caller, memory)
        return Desk(self.caller, memory, language=self.judge.language, asked_with=self.judge.asked_with)
