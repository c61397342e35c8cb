"""Model-based test of the core protocol; ``python tests/lab/proofs/model.py`` runs longer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import Phase

from pandaeval_collector.exporters.delivery.outbox import Outbox
from pandaeval_collector.pipeline.deciding import Committer
from pandaeval_collector.pipeline.keeping import Keeper
from pandaeval_collector.store import Store
from support.examples import examples
from support.stepped.explored import explore

_STEPS, _EXAMPLES = 250, 10


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Silence expected failures in the log."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_any_order_of_steps_and_deaths_keeps_the_guarantees() -> None:
    figures = explore(examples(_EXAMPLES * 8), _STEPS)
    tried = ("deaths", "acknowledged", "revisions")  # a few examples may not reach the other figures
    assert all(figures[name] for name in tried), figures


def found() -> str:
    """Return the model's report of a fault."""
    with pytest.raises(AssertionError) as caught:
        explore(200, 60, derandomize=True, phases=[Phase.generate])
    return str(caught.value)


@pytest.mark.slow  # checks the model, not the product
class TestTheModelDetects:
    """Faults injected into the real code."""

    def test_an_acknowledgement_before_the_commit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        keep = Keeper.keep

        async def hastily(self: Keeper, *args: Any) -> None:
            asyncio.get_running_loop().create_task(keep(self, *args))

        monkeypatch.setattr(Keeper, "keep", hastily)
        assert "acknowledged spans are lost" in found()

    def test_an_outbox_that_advances_before_the_sink_accepts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        send = Outbox._send

        async def hastily(self: Outbox, last: bool) -> float | None:
            before = self.seq
            rows = self._read(before, 512)
            if rows:
                await self._note(rows[-1].seq, "")
                self.seq = before
            return await send(self, last)

        monkeypatch.setattr(Outbox, "_send", hastily)
        assert "never reached the sink" in found()

    def test_a_revision_that_is_committed_twice(self, monkeypatch: pytest.MonkeyPatch) -> None:
        commit = Store.commit

        def twice(self: Store, changes: Any) -> Any:
            commit(self, changes)
            return commit(self, changes)

        monkeypatch.setattr(Store, "commit", twice)
        assert "were counted as" in found()

    def test_a_job_that_ends_without_its_verdict_stored(self, monkeypatch: pytest.MonkeyPatch) -> None:
        make = Committer._commit

        async def forgetful(self: Committer, decide: Any) -> None:
            decision = await decide()
            if decision.changes.ended:
                decision.changes.results.clear()
                await asyncio.wrap_future(self._store.commit(decision.changes))
            else:

                async def made() -> Any:
                    return decision

                await make(self, made)

        monkeypatch.setattr(Committer, "_commit", forgetful)
        assert "not those of a file" in found()
