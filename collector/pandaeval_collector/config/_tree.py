"""The whole configuration."""

from __future__ import annotations

from pandaeval_collector.base.section import Section, group
from pandaeval_collector.config.sections_gates import Gates, TrialsSection
from pandaeval_collector.config.sections_in import Close, Kafka, Late, LineSection, Server, StoreSection
from pandaeval_collector.config.sections_judge import JudgeSection, Redact
from pandaeval_collector.config.sections_out import Exporters, Spans, Ui
from pandaeval_collector.config.sections_scoring import (
    Cases,
    DrillSection,
    Embedding,
    LabelsSection,
    LearnSection,
    MetricsSection,
    ResponseSection,
    SessionSection,
    SessionsSection,
)


class Config(Section):
    """Everything that can be set. Durations are seconds (float), sizes bytes (int); ``Config()`` is the defaults."""

    server: Server = group(Server)
    kafka: Kafka = group(Kafka)
    close: Close = group(Close)
    late: Late = group(Late)
    line: LineSection = group(LineSection)
    session: SessionSection = group(SessionSection)
    sessions: SessionsSection = group(SessionsSection)
    metrics: MetricsSection = group(MetricsSection)
    response: ResponseSection = group(ResponseSection)
    cases: Cases = group(Cases)
    trials: TrialsSection = group(TrialsSection)
    embedding: Embedding = group(Embedding)
    judge: JudgeSection = group(JudgeSection)
    labels: LabelsSection = group(LabelsSection)
    drill: DrillSection = group(DrillSection)
    learn: LearnSection = group(LearnSection)
    redact: Redact = group(Redact)
    store: StoreSection = group(StoreSection)
    ui: Ui = group(Ui)
    spans: Spans = group(Spans)
    exporters: Exporters = group(Exporters)
    gates: Gates = group(Gates)
