"""Names of metrics and embedders, against those that there are. As a program it is asked for :func:`problems`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pandaeval_collector.analysis.embedding import schemes
from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.runtime.modules import ModuleLoadError
from pandaeval_collector.base.runtime.serving import serve
from pandaeval_collector.cli._config import resolve_config
from pandaeval_collector.config import Config, MetricNames, Problem, check_embedder, check_metrics
from pandaeval_collector.scoring.metric.declaration import ends
from pandaeval_collector.scoring.registry import of_packages, registry


def metric_names(path: Path | None) -> MetricNames:
    """Returns the names of all metrics that the configuration knows, its own modules included."""
    return names_of(resolve_config(path).config)


def names_of(config: Config) -> MetricNames:
    """Returns the names of all metrics of a configuration (see :func:`metric_names`)."""
    return MetricNames((metric.level, metric.name) for metric in registry(config.metrics.modules).values())


def check_asked(config: Config, asked: Iterable[str], with_cases: bool = False) -> None:
    """Raises ``UserError`` if a metric in ``asked`` needs a judge and none is configured: it would be left out
    silently. ``with_cases``: a bare name means graders of trials, too."""
    if config.judge.model is not None:
        return
    kinds = {key: metric.kind for key, metric in registry(config.metrics.modules).items()}
    names = names_of(config)

    def meant(name: str) -> list[str]:
        found = names.select(name)
        others = [key for key in found if with_cases or key == name or not key.startswith("trial.")]
        return others or [*found]

    judged = [name for name in asked if (keys := meant(name)) and all(kinds[key] == "llm" for key in keys)]
    if judged:
        raise UserError(f"{', '.join(judged)}: a judge has to be asked; name one with --model, or set judge.model")


def problems(config: Config) -> Iterable[Problem]:
    """Yields a problem for each name that nothing has, and each module that cannot be used."""
    yield from check_embedder(config, schemes())
    unusable = list(_check_modules(config.metrics.modules))
    yield from unusable
    # What is unknown may be a metric of a module or a package that cannot be used, which was said.
    if not unusable and not of_packages().lost:
        known = registry(config.metrics.modules)
        scales = {key: ends(metric.scale) for key, metric in known.items() if metric.scale}
        yield from check_metrics(config, ((metric.level, metric.name) for metric in known.values()), scales)


def _check_modules(modules: Sequence[str]) -> Iterable[Problem]:
    usable: tuple[str, ...] = ()
    for index, module in enumerate(modules):
        try:
            registry((*usable, module))
        except ModuleLoadError as error:
            yield Problem(f"metrics.modules[{index}]", str(error))
        else:
            usable = (*usable, module)


if __name__ == "__main__":
    serve(lambda config, _: {"problems": lambda: [*problems(config)]})
