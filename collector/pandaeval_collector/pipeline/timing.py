"""Times and sizes at which traces and sessions end, and at which data is deleted."""

from __future__ import annotations

from dataclasses import dataclass, field

from pandaeval_otel.assembly import CloseRules


@dataclass(frozen=True, slots=True)
class Timing:
    """Limits in seconds and bytes."""

    close: CloseRules = field(default_factory=CloseRules)
    open_bytes: int = 256 << 20
    """Bytes of memory for undecided traces; beyond it requests are refused."""
    session_idle: float = 900.0
    session_max_age: float = 86_400.0
    session_interim: float | None = None
    """Seconds of quiet before an open session is scored provisionally; ``None``: never."""
    late_window: float = 600.0
    retention: float = 604_800.0
    keeps_content: bool = False
    """Whether spans are kept, compressed, after the late window."""
    judged: float = 30 * 86_400.0
    """Seconds for which judged scores are kept for people's labels."""
    upkeep: float = 30.0
    """Seconds between two rounds of deletion."""
    judge_wait: float = 0.0
    """Maximum seconds that an ended session waits for judges."""
