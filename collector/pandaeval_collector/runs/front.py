"""Settings of components that read no trace content. Imports no content code."""

from __future__ import annotations

from pandaeval_collector.config import Config
from pandaeval_collector.pipeline.timing import Timing
from pandaeval_otel.assembly import CloseRules

JUDGE_WAIT_SECONDS = 600.0
"""Maximum seconds that an ended session waits for the judge. A later verdict makes a revision."""


def trace_timeout(config: Config) -> float:
    """Return a trace's time limit in seconds: a third of a batch's."""
    return config.line.timeout / 3


def close_rules(config: Config) -> CloseRules:
    close = config.close
    return CloseRules(
        quiet=close.quiet,
        idle=close.idle,
        max_age=close.max_age,
        fragment_quiet=max(close.quiet, min(close.idle, 3 * close.quiet)),
        max_spans=close.max_spans,
        max_bytes=close.max_bytes,
        reopen_delays=CloseRules().reopen_delays if config.late.policy == "rescore" else (),
    )


def timing(config: Config) -> Timing:
    return Timing(
        close=close_rules(config),
        open_bytes=config.server.max_open_bytes,
        session_idle=config.session.idle,
        session_max_age=config.session.max_age,
        session_interim=config.session.interim,
        judge_wait=JUDGE_WAIT_SECONDS if config.judge.model is not None else 0.0,
        late_window=config.late.window,
        retention=config.store.retention,
        keeps_content=config.store.keep_content,
        upkeep=min(Timing().upkeep, max(1.0, config.late.window / 2)),
    )
