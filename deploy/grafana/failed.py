"""Recent failures from Jaeger, Tempo and Loki, in folded rows that are queried when opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grafana_foundation_sdk.builders import dashboard, table
from grafana_foundation_sdk.cog import builder as cog, variants
from grafana_foundation_sdk.models import dashboard as model

from deploy.grafana.panels import linked

_NEWEST = 20
_WHAT = {"trace": "Traces", "session": "Sessions"}
_HOW = {
    "jaeger": (
        "The name of the evaluation span lists the failed metrics. Open a trace to see reason and session in its tags."
    ),
    "tempo": "A row for each evaluation span with a failed result.",
    "loki": "A row for each failed result.",
}
_TEMPO = {
    "pandaeval.session.id": "session",
    "pandaeval.service": "service",
    "pandaeval.reason": "reason",
    "pandaeval.url": "page",
}
_LOKI = {
    "Time": "time",
    "gen_ai_conversation_id": "session",
    "pandaeval_service": "service",
    "gen_ai_agent_name": "agent",
    "gen_ai_evaluation_name": "metric",
    "gen_ai_evaluation_score_value": "score",
    "gen_ai_evaluation_explanation": "reason",
    "pandaeval_final": "final",
    "trace_id": "trace",
    "pandaeval_url": "page",
}
"""Headings by the name of the field in the answer, in the order of the columns."""


class _Asked(variants.Dataquery):
    """A query that the SDK lacks."""

    def __init__(self, said: Mapping[str, object]) -> None:
        self._said = said

    def to_json(self) -> dict[str, object]:
        return {"refId": "A", **self._said}


class _Query(cog.Builder[variants.Dataquery]):
    def __init__(self, asked: _Asked) -> None:
        self._asked = asked

    def build(self) -> variants.Dataquery:
        return self._asked


def sources() -> list[dashboard.DatasourceVariable]:
    return [dashboard.DatasourceVariable(kind).label(kind.title()).type(kind) for kind in _HOW]


def failed(level: str) -> list[dashboard.Row]:
    """Folded rows with the newest failures of ``level``, per kind of store."""
    return [_row(kind, level) for kind in _HOW]


def _row(kind: str, level: str) -> dashboard.Row:
    title = f"{_WHAT[level]} that failed recently, from {kind.title()}"
    source = model.DataSourceRef(type_val=kind, uid=f"${{{kind}}}")
    panel = table.Panel().title(title).description(f"All services, newest first. {_HOW[kind]}").span(24).height(8)
    panel.datasource(source).with_target(_Query(_Asked({"datasource": source, **_QUERIES[kind](level)})))
    _columns(panel, kind)
    return dashboard.Row(title).collapsed(True).with_panel(panel)


def _columns(panel: table.Panel, kind: str) -> None:
    if kind == "loki":  # the attributes of a record are in a single field
        extracted: dict[str, Any] = {"source": "labels", "format": "json", "replace": True, "keepTime": True}
        panel.with_transformation(model.DataTransformerConfig(id_val="extractFields", options=extracted))
    headings = {"tempo": _TEMPO, "loki": _LOKI}.get(kind)
    if headings is not None:
        order = {name: place for place, name in enumerate(headings)} if kind == "loki" else {}
        options = {"renameByName": headings, "indexByName": order, "excludeByName": {}}
        panel.with_transformation(model.DataTransformerConfig(id_val="organize", options=options))
        linked(panel, "page", "Open on PandaEval's page", "${__value.raw}")


def _jaeger(level: str) -> dict[str, object]:
    tags = f"pandaeval.verdict=fail pandaeval.level={level}"
    return {"queryType": "search", "service": "pandaeval", "tags": tags, "limit": _NEWEST}


def _tempo(level: str) -> dict[str, object]:
    wanted = f'{{span.pandaeval.verdict="fail" && span.pandaeval.level="{level}"}}'
    shown = ", ".join(f"span.{name}" for name in _TEMPO)
    return {"queryType": "traceql", "query": f"{wanted} | select({shown})", "limit": _NEWEST, "tableType": "spans"}


def _loki(level: str) -> dict[str, object]:
    wanted = f'{{service_name="pandaeval"}} | pandaeval_level="{level}" | pandaeval_passed="false"'
    kept = ", ".join(name for name in _LOKI if name != "Time")
    return {"queryType": "range", "expr": f"{wanted} | keep {kept}", "maxLines": _NEWEST, "direction": "backward"}


_QUERIES = {"jaeger": _jaeger, "tempo": _tempo, "loki": _loki}
