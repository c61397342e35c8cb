"""Common parts of dashboards: frame, rows, variables and links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as model

from deploy.grafana.panels import PROMETHEUS, Panel

Row = tuple[str, Sequence[Panel]]


def frame(
    uid: str,
    title: str,
    text: str,
    variables: Iterable[dashboard.QueryVariable | dashboard.DatasourceVariable],
    rows: Iterable[Row],
    closed: Iterable[dashboard.Row] = (),
) -> dashboard.Dashboard:
    """A dashboard of titled rows, ``closed`` rows last."""
    made = dashboard.Dashboard(title).uid(uid).description(text).tags(["pandaeval"]).timezone("browser").readonly()
    made.time("now-6h", "now").refresh("30s").tooltip(model.DashboardCursorSync.CROSSHAIR)
    others = dashboard.DashboardLink("PandaEval").type(model.DashboardLinkType.DASHBOARDS).tags(["pandaeval"])
    made.link(others.keep_time(True).include_vars(True))
    made.with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    for variable in variables:
        made.with_variable(variable)
    for heading, panels in rows:
        made.with_row(dashboard.Row(heading))
        for panel in panels:
            made.with_panel(panel)
    for row in closed:
        made.with_row(row)
    return made


def folded(heading: str, panels: Sequence[Panel]) -> dashboard.Row:
    """A closed row, for optional data."""
    row = dashboard.Row(heading).collapsed(True)
    for panel in panels:
        row.with_panel(panel)
    return row


def choice(name: str, label: str, query: str) -> dashboard.QueryVariable:
    """A variable with a label's values; all by default. ``query``: ``label_values(…)``."""
    made = dashboard.QueryVariable(name).label(label).query({"query": query, "refId": name}).datasource(PROMETHEUS)
    made.refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(model.VariableSort.ALPHABETICAL_ASC)
    everything = model.VariableOption(text="All", value="$__all", selected=True)
    return made.multi(True).include_all(True).all_value(".*").current(everything)


def units(level: str = "") -> list[dashboard.QueryVariable]:
    """Selector of service, agent and environment, at a level if given."""
    source = "pandaeval_evaluations_total" + (f'{{pandaeval_level="{level}"}}' if level else "")
    return [
        choice("service", "Service", f"label_values({source}, pandaeval_service)"),
        choice("agent", "Agent", f"label_values({source}, gen_ai_agent_name)"),
        choice("environment", "Environment", f"label_values({source}, deployment_environment_name)"),
    ]
