"""Opens the judge of a command."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._options import option
from pandaeval_collector.config import Config, secret
from pandaeval_collector.jobs.setup import check_installed
from pandaeval_collector.runs.settings import judge as judge_settings
from pandaeval_collector.store import Store
from pandaeval_lab.cli._names import config_with_trials
from pandaeval_lab.replay.judge import OwnJudge, hasty

JudgeModel = Annotated[str | None, option("Judge model in litellm format; default: judge.model.")]


def settings_of(path: Path | None, model: str | None, more: Mapping[str, object] | None = None) -> Config:
    """Return the configuration with a usable judge; ``more``: further keys. Raises ``UserError``."""
    own: Mapping[str, object] = {
        "judge.model": model,
        "judge.models": None if model is None else {},
        "judge.detail": "all",
    }
    given = config_with_trials(path, {**own, **(more or {})})
    if given.judge.model is None:
        raise UserError("name a model with --model, or set judge.model")
    check_judge(given)
    return given


def check_judge(config: Config) -> None:
    """Raise ``UserError`` if a package of the judge or the key in ``judge.api_key_env`` is missing."""
    check_installed(config.judge.api_base)
    secret(config.judge.api_key_env, os.environ)


@asynccontextmanager
async def judge_of(settings: Config, environ: Mapping[str, str]) -> AsyncIterator[OwnJudge]:
    """Open the judge on a temporary store. Raises ``CallFailedError``."""
    configured = judge_settings(settings)
    assert configured is not None, "settings_of checks this"
    with tempfile.TemporaryDirectory(prefix="pandaeval-") as folder:
        store = Store(Path(folder), durability="off", max_bytes=1 << 30)
        judge = OwnJudge(store, hasty(configured), environ)
        try:
            await judge.prices()
            yield judge
        finally:
            await judge.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            store.close()
