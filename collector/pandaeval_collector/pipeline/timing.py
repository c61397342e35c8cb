"""When traces and sessions are over, and how long the store keeps what they leave behind."""

from __future__ import annotations

from dataclasses import dataclass, field

from pandaeval_otel.assembly import CloseRules


@dataclass(frozen=True, slots=True)
class Timing:
    """When traces and sessions are closed, and how long or how much is kept; seconds and bytes."""

    close: CloseRules = field(default_factory=CloseRules)
    open_bytes: int = 256 << 20
    """Bytes of memory that traces may take until they are decided; beyond it nothing is taken in."""
    session_idle: float = 900.0
    session_max_age: float = 86_400.0
    session_interim: float | None = None
    """Seconds of quiet after which an open session is scored as far as it has come; ``None``: never."""
    late_window: float = 600.0
    retention: float = 604_800.0
    keeps_content: bool = False
    """Whether spans are kept, compressed, after the late window."""
    judged: float = 30 * 86_400.0
    """How long judged scores are kept for people's labels."""
    upkeep: float = 30.0
    """Seconds between two rounds of forgetting."""
    judge_wait: float = 0.0
    """How long a session that is over waits for judges, seconds."""
