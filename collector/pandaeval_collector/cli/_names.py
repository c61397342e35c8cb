"""Whether the metrics and embedders that a configuration names exist; as a program, for :func:`problems_apart`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pandaeval_collector.base.runtime.calls import Calls
from pandaeval_collector.base.runtime.serving import serve
from pandaeval_collector.config import Config

if TYPE_CHECKING:
    from pandaeval_collector.config import Problem

MODULE = "pandaeval_collector.cli._names"


def problems_apart(config: Config) -> list[Problem]:
    """Returns :func:`problems`, as another process finds them: it loads what is named, and this one does not."""
    named, judge = (config.metrics, config.embedding), config.judge
    if named == (Config().metrics, Config().embedding) and not (judge.models or judge.samples):
        return []

    async def ask() -> list[Problem]:
        calls = Calls("the check of names", MODULE, config, os.environ)
        try:
            found: list[Problem] = await calls.ask("problems")
        finally:
            await calls.close()
        return found

    return asyncio.run(ask())


def problems(config: Config) -> Iterable[Problem]:
    """Yields a problem for each name that nothing has, and each module that cannot be used."""
    from pandaeval_collector.analysis.embedding import schemes
    from pandaeval_collector.config import check_embedder, check_metrics
    from pandaeval_collector.scoring.metric.declaration import ends
    from pandaeval_collector.scoring.registry import of_packages, registry

    yield from check_embedder(config, schemes())
    unusable = list(_check_modules(config.metrics.modules))
    yield from unusable
    # What is unknown may be a metric of a module or a package that cannot be used, which was said.
    if not unusable and not of_packages().lost:
        known = registry(config.metrics.modules)
        scales = {key: ends(metric.scale) for key, metric in known.items() if metric.scale}
        yield from check_metrics(config, ((metric.level, metric.name) for metric in known.values()), scales)


def _check_modules(modules: Sequence[str]) -> Iterable[Problem]:
    from pandaeval_collector.base.runtime.modules import ModuleLoadError
    from pandaeval_collector.config import Problem
    from pandaeval_collector.scoring.registry import registry

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
