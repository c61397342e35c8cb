"""Searches in Jaeger, which the Grafana Foundation SDK has no types for."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard, table
from grafana_foundation_sdk.cog import builder as cog
from grafana_foundation_sdk.cog import variants
from grafana_foundation_sdk.models import dashboard as model

_JAEGER = model.DataSourceRef(type_val="jaeger", uid="${traces}")


class _Search(variants.Dataquery):
    """What Grafana's Jaeger data source is asked: the newest traces of a service with a span that has the tags."""

    def __init__(self, tags: str, limit: int) -> None:
        self.tags, self.limit = tags, limit

    def to_json(self) -> dict[str, object]:
        return {
            "refId": "A",
            "datasource": _JAEGER,
            "queryType": "search",
            "service": "pandaeval-collector",
            "tags": self.tags,
            "limit": self.limit,
        }


class _Query(cog.Builder[variants.Dataquery]):
    def __init__(self, search: _Search) -> None:
        self._search = search

    def build(self) -> variants.Dataquery:
        return self._search


def source() -> dashboard.DatasourceVariable:
    """The variable that chooses the Jaeger."""
    return dashboard.DatasourceVariable("traces").label("Jaeger").type("jaeger")


def failed(level: str, title: str, text: str, limit: int = 20) -> table.Panel:
    """A table of the traces with a failing evaluation span about units of ``level``; each opens by its id."""
    panel = table.Panel().title(title).description(text).datasource(_JAEGER).span(24).height(8)
    return panel.with_target(_Query(_Search(f"pandaeval.verdict=fail pandaeval.level={level}", limit)))
