"""The whole configuration."""

from __future__ import annotations

from pandaeval_collector.base.section import Section, group
from pandaeval_collector.config.sections_gates import Gates, Trials
from pandaeval_collector.config.sections_in import Close, Late, Line, Server, Store
from pandaeval_collector.config.sections_judge import Judge, Redact
from pandaeval_collector.config.sections_kafka import Kafka
from pandaeval_collector.config.sections_out import Exporters, Spans
from pandaeval_collector.config.sections_scoring import Cases, Embedding, Labels, Metrics, Session, Sessions
from pandaeval_collector.config.sections_ui import Ui


class Config(Section):
    """Everything that can be set. Durations are seconds (float), sizes bytes (int); ``Config()`` is the defaults."""

    server: Server = group(Server)
    kafka: Kafka = group(Kafka)
    close: Close = group(Close)
    late: Late = group(Late)
    line: Line = group(Line)
    session: Session = group(Session)
    sessions: Sessions = group(Sessions)
    metrics: Metrics = group(Metrics)
    cases: Cases = group(Cases)
    trials: Trials = group(Trials)
    embedding: Embedding = group(Embedding)
    judge: Judge = group(Judge)
    labels: Labels = group(Labels)
    redact: Redact = group(Redact)
    store: Store = group(Store)
    ui: Ui = group(Ui)
    spans: Spans = group(Spans)
    exporters: Exporters = group(Exporters)
    gates: Gates = group(Gates)
