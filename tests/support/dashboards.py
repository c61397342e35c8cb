"""The queries in Grafana's dashboard files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

GRAFANA = Path(__file__).parents[2] / "deploy" / "grafana"
FILES = sorted((GRAFANA / "dashboards").glob("*.json"))
_TIMES = {"$__rate_interval": "5m", "$__interval": "1m", "$__range": "15m"}
_NAME = re.compile(r"\bpandaeval_[a-z_]+\b(?=[{\[) ]|$)")


@dataclass(frozen=True, slots=True)
class Asked:
    """A dashboard query. ``exemplars``: whether it requests exemplars."""

    where: str
    expression: str
    exemplars: bool


def queries() -> Iterator[Asked]:
    """Return all panel queries, and the score queries of a trace."""
    for file in FILES:
        for panel in panels(json.loads(file.read_text())):
            for target in targets(panel):
                where = f"{file.stem}: {panel['title']} {target['refId']}"
                yield Asked(where, target["expr"], bool(target.get("exemplar")))
    for source in sources():
        for each in source["jsonData"].get("tracesToMetrics", {}).get("queries", ()):
            yield Asked(f"{source['name']}: {each['name']}", each["query"], False)


def panels(dashboard: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the visible panels, with those of folded rows."""
    for panel in dashboard["panels"]:
        yield from panel["panels"] if panel["type"] == "row" else (panel,)


def targets(panel: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a panel's Prometheus queries."""
    return [target for target in panel["targets"] if target["datasource"]["type"] == "prometheus"]


def searches(kind: str) -> list[dict[str, Any]]:
    """Return the queries to data sources of a kind, such as ``jaeger``."""
    found = (target for file in FILES for panel in panels(json.loads(file.read_text())) for target in panel["targets"])
    return [target for target in found if target["datasource"]["type"] == kind]


def variables(dashboard: dict[str, Any]) -> dict[str, str]:
    found = dashboard["templating"]["list"]
    return {each["name"]: each["query"]["query"] for each in found if each["type"] == "query"}


def sources() -> list[dict[str, Any]]:
    """Return the provisioned data sources, with ``$$`` as ``$``."""
    text = (GRAFANA / "provisioning" / "datasources" / "pandaeval.yaml").read_text()
    return list(yaml.safe_load(text.replace("$$", "$"))["datasources"])


def alerts() -> dict[str, str]:
    groups = yaml.safe_load((GRAFANA.parent / "prometheus" / "rules.yaml").read_text())["groups"]
    return {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}


def filled(expression: str, **values: str) -> str:
    """Fill an expression as Grafana does; default: everything selected."""
    for name, value in _TIMES.items():
        expression = expression.replace(name, value)
    expression = expression.replace("${__tags}", "$__tags").replace("$__tags", values.pop("tags", ""))
    return re.sub(r"\$(\w+)", lambda found: values.get(found[1], ".*"), expression)


def metric_names(expression: str) -> set[str]:
    return {name for name in _NAME.findall(expression) if name not in ("pandaeval_service",)}
