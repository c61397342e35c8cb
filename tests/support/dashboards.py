"""What the dashboards ask, read from the files that Grafana reads."""

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
_TIMES = {"$__rate_interval": "1m", "$__interval": "1m", "$__range": "15m"}
_NAME = re.compile(r"\bpandaeval_[a-z_]+\b(?=[{\[) ]|$)")


@dataclass(frozen=True, slots=True)
class Asked:
    """One query of a dashboard. ``exemplars``: whether dots are asked for as well."""

    where: str
    expression: str
    exemplars: bool


def queries() -> Iterator[Asked]:
    """All queries of all panels, and what a trace in Grafana asks for its scores."""
    for file in FILES:
        for panel in panels(json.loads(file.read_text())):
            for target in targets(panel):
                where = f"{file.stem}: {panel['title']} {target['refId']}"
                yield Asked(where, target["expr"], bool(target.get("exemplar")))
    for source in sources():
        for each in source["jsonData"].get("tracesToMetrics", {}).get("queries", ()):
            yield Asked(f"{source['name']}: {each['name']}", each["query"], False)


def panels(dashboard: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The panels of a dashboard that show something, those of folded rows too."""
    for panel in dashboard["panels"]:
        yield from panel["panels"] if panel["type"] == "row" else (panel,)


def targets(panel: dict[str, Any]) -> list[dict[str, Any]]:
    """What a panel asks Prometheus."""
    return [target for target in panel["targets"] if target["datasource"]["type"] == "prometheus"]


def searches(kind: str) -> list[dict[str, Any]]:
    """What the dashboards ask data sources of this kind, such as ``jaeger``."""
    found = (target for file in FILES for panel in panels(json.loads(file.read_text())) for target in panel["targets"])
    return [target for target in found if target["datasource"]["type"] == kind]


def variables(dashboard: dict[str, Any]) -> dict[str, str]:
    """Query of a dashboard's variables by name."""
    found = dashboard["templating"]["list"]
    return {each["name"]: each["query"]["query"] for each in found if each["type"] == "query"}


def sources() -> list[dict[str, Any]]:
    """The provisioned data sources, as Grafana has them: ``$$`` is how its files write ``$``."""
    text = (GRAFANA / "provisioning" / "datasources" / "pandaeval.yaml").read_text()
    return list(yaml.safe_load(text.replace("$$", "$"))["datasources"])


def alerts() -> dict[str, str]:
    """Expressions of the alert rules by name."""
    groups = yaml.safe_load((GRAFANA.parent / "prometheus" / "rules.yaml").read_text())["groups"]
    return {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}


def filled(expression: str, **values: str) -> str:
    """An expression as Grafana sends it, with everything chosen unless ``values`` say otherwise."""
    for name, value in _TIMES.items():
        expression = expression.replace(name, value)
    expression = expression.replace("${__tags}", "$__tags").replace("$__tags", values.pop("tags", ""))
    return re.sub(r"\$(\w+)", lambda found: values.get(found[1], ".*"), expression)


def metric_names(expression: str) -> set[str]:
    """Names of our metrics in an expression."""
    return {name for name in _NAME.findall(expression) if name not in ("pandaeval_service",)}
