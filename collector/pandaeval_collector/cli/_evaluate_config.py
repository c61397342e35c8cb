"""The configuration that ``pandaeval evaluate`` scores with: the file's, with the command's options in it."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from pandaeval_collector.cli._config import check_asked, resolve_config
from pandaeval_collector.cli._evaluate_options import EvaluateOptions
from pandaeval_collector.config import Config, masked, secret
from pandaeval_collector.jobs import check_installed
from pandaeval_collector.jobs.reachable import unreachable
from pandaeval_collector.scoring.registry import registry


def config_of(options: EvaluateOptions) -> Config:
    """Raises ``UserError`` for an option or a file that cannot be used, and for a judge that could never be asked. A
    judge's server that cannot be reached now is a notice on standard error."""
    given: dict[str, object] = {"metrics.enabled": options.metrics, "judge.model": options.model}
    if options.model is not None:
        given["judge.models"] = _everywhere(options.model, options.config)
    config = resolve_config(options.config, given).config
    check_asked(config, options.metrics or (), options.cases is not None or config.cases.path is not None)
    if config.judge.model is not None:
        _check_judge(config)
    return config


def _everywhere(model: str, path: Path | None) -> dict[str, str]:
    """``judge.models`` by which metrics that name a model of their own are judged by this one, too."""
    known = registry(resolve_config(path).config.metrics.modules)
    return {key: model for key, metric in known.items() if metric.model is not None}


def _check_judge(config: Config) -> None:
    check_installed()
    secret(config.judge.api_key_env, os.environ)
    if config.judge.api_base is not None and (why := unreachable(config.judge.api_base)):
        shown = masked(config.judge.api_base)
        cure = "see whether it is up, and judge.api_base right; what needs no judge is scored all the same"
        typer.echo(f"notice: the judge's server {shown} cannot be reached ({why}): {cure}", err=True)
