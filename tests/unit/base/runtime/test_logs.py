"""Log lines: one per record, bounded, not forgeable."""

from __future__ import annotations

import io
import logging

import pytest

from pandaeval_collector.base.runtime.logs import MAX_LINE_BYTES, BoundedFormatter

Written = tuple[logging.Logger, io.StringIO]


@pytest.fixture
def written() -> Written:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(BoundedFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger = logging.Logger("pandaeval_collector.test")
    logger.addHandler(handler)
    return logger, stream


def test_an_ordinary_line_is_unchanged(written: Written) -> None:
    logger, stream = written
    logger.warning("the spans of service %r say nothing", "shop – Köln")
    assert stream.getvalue().endswith(
        " WARNING pandaeval_collector.test: the spans of service 'shop – Köln' say nothing\n"
    )


@pytest.mark.parametrize("name", ["x" * (1 << 20), "é" * 3000, "\x00" * 5000, "客" * 700])
def test_a_long_name_is_cut(written: Written, name: str) -> None:
    logger, stream = written
    logger.warning("service %s", name)
    line, end = stream.getvalue().split("\n")
    assert len(line.encode()) <= MAX_LINE_BYTES
    assert "service" in line
    assert end == ""


def test_external_text_cannot_start_a_line_or_move_the_cursor(written: Written) -> None:
    logger, stream = written
    logger.warning("service %s", "shop\n2026-01-01 00:00:00,000 ERROR pandaeval_collector: all is lost\x1b[2J\u2028x")
    [line] = stream.getvalue().splitlines()
    assert r"shop\n2026-01-01" in line
    assert line.isprintable()


def test_the_lines_of_a_traceback_are_indented_and_bounded(written: Written) -> None:
    logger, stream = written
    try:
        raise ValueError("bad\n2026-01-01 00:00:00,000 ERROR forged: line\x1b[2J" + "y" * (1 << 20))
    except ValueError:
        logger.exception("metric %s failed", "m")
    first, *others = stream.getvalue().splitlines()
    assert first.endswith("metric m failed")
    assert any("Traceback" in line for line in others)
    assert any("forged" in line for line in others)
    assert all(line.startswith("    ") and len(line.encode()) <= MAX_LINE_BYTES for line in others)


def test_a_very_long_traceback_is_shortened(written: Written) -> None:
    logger, stream = written
    try:
        raise ValueError("\n".join(map(str, range(10_000))))
    except ValueError:
        logger.exception("failed")
    assert len(stream.getvalue().splitlines()) < 300
