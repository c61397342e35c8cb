"""What the process of a run is told, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pandaeval_collector.jobs.setup import JudgeConfig
from pandaeval_collector.scoring.evaluator import EvaluatorSettings
from pandaeval_collector.store.runs import RunResult


@dataclass(frozen=True, slots=True)
class RunSetup:
    """The setup of the process of a run. ``store``: the data directory; ``folder``: where the process may
    write; ``sessions``: whether sessions are scored; ``counting``: calls are counted and no model is asked."""

    store: Path
    folder: Path
    embedding: str
    settings: EvaluatorSettings
    judge: JudgeConfig | None
    run_id: str
    sessions: bool = False
    emit: bool = False
    counting: bool = False


@dataclass(slots=True)
class CallCount:
    """Counts the calls that a run would make, and tokens, by model; ``remembered``: answers that cost nothing."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    remembered: int = 0
    models: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Calls, and tokens in and out, by model."""

    def add(self, model: str, prompt: int, completion: int) -> None:
        self.calls += 1
        self.prompt_tokens += prompt
        self.completion_tokens += completion
        calls, into, out = self.models.get(model, (0, 0, 0))
        self.models[model] = calls + 1, into + prompt, out + completion


@dataclass(slots=True)
class Scored:
    """The outcome of a batch. ``items``: each trace with why it failed (``""``: it did not); ``sent``: pickled, the
    results to export, if the run exports any."""

    items: list[tuple[int, str]]
    results: list[RunResult]
    sent: bytes = b""
    counted: CallCount | None = None
