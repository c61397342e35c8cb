"""Fixtures of every pipeline test."""

from collections.abc import Iterator

import pytest

from support.one_word import one_outcome_per_id


@pytest.fixture(autouse=True)
def _one_word_per_id() -> Iterator[None]:
    with one_outcome_per_id():
        yield
