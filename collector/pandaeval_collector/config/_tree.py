"""The whole configuration."""

from __future__ import annotations

from pandaeval_collector.config._types import Section, group
from pandaeval_collector.config.sections_in import CloseSection, LateSection, LineSection, ServerSection, StoreSection
from pandaeval_collector.config.sections_out import Exporters
from pandaeval_collector.config.sections_scoring import (
    EmbeddingSection,
    GatesSection,
    JudgeSection,
    MetricsSection,
    RedactSection,
    SessionSection,
    SessionsSection,
)


class Config(Section):
    """Everything that can be set. Durations are seconds (float), sizes bytes (int); ``Config()`` is the defaults."""

    server: ServerSection = group(ServerSection)
    close: CloseSection = group(CloseSection)
    late: LateSection = group(LateSection)
    line: LineSection = group(LineSection)
    session: SessionSection = group(SessionSection)
    sessions: SessionsSection = group(SessionsSection)
    metrics: MetricsSection = group(MetricsSection)
    embedding: EmbeddingSection = group(EmbeddingSection)
    judge: JudgeSection = group(JudgeSection)
    redact: RedactSection = group(RedactSection)
    store: StoreSection = group(StoreSection)
    exporters: Exporters = group(Exporters)
    gates: GatesSection = group(GatesSection)
