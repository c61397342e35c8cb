"""Checks names of metrics and embedders. Runs as a program, too."""

from __future__ import annotations

from collections.abc import Iterable

from pandaeval_collector.analysis.embedding import schemes
from pandaeval_collector.base.runtime.modules import ModuleLoadError
from pandaeval_collector.base.runtime.serving import serve
from pandaeval_collector.base.score import ends
from pandaeval_collector.config import Config, Problem, check_embedder, check_metrics
from pandaeval_collector.scoring.registry import GRADERS, of_packages, registry


def problems(config: Config) -> Iterable[Problem]:
    """Yield a problem per unknown name and unusable module."""
    yield from check_embedder(config, schemes())
    usable: tuple[str, ...] = (GRADERS,)
    for index, module in enumerate(config.metrics.modules):
        try:
            registry((*usable, module))
        except ModuleLoadError as error:
            yield Problem(f"metrics.modules[{index}]", str(error))
        else:
            usable = (*usable, module)
    # An unknown name can belong to an unusable module or package, whose error was already reported.
    if len(usable) > len(config.metrics.modules) and not of_packages().lost:
        known = registry(usable)
        scales = {key: ends(metric.scale) for key, metric in known.items() if metric.scale}
        yield from check_metrics(config, ((metric.level, metric.name) for metric in known.values()), scales)


if __name__ == "__main__":
    serve(lambda config, _: {"problems": lambda: [*problems(config)]})
