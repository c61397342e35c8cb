"""The panels of our dashboards, as types of the Grafana Foundation SDK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grafana_foundation_sdk.builders import (
    common as common_builders,
    dashboard,
    heatmap,
    prometheus,
    stat,
    table,
    timeseries,
)
from grafana_foundation_sdk.cog import builder as cog
from grafana_foundation_sdk.models import (
    common,
    dashboard as model,
    heatmap as heatmap_model,
    prometheus as prometheus_model,
)

PROMETHEUS = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
GOOD, WARN, BAD, PLAIN = "green", "orange", "red", "text"
_BAR = "1m"
"""The narrowest bar: an increase needs several samples, and metrics may come every 15 s only."""
Panel = cog.Builder[model.Panel]
Steps = Sequence[tuple[float, str]]
Expressions = Mapping[str, str]
"""Legend (or column) by its PromQL expression's place; the order is kept."""


def graph(
    title: str,
    text: str,
    expressions: Expressions,
    unit: str = "short",
    *,
    width: int = 12,
    stacked: bool = False,
    exemplars: Sequence[str] = (),
    top: float | None = None,
) -> timeseries.Panel:
    """Lines or stacked bars over time.

    ``exemplars``: legends with exemplars, on buckets only. ``top``: fixed axis end.
    """
    panel = timeseries.Panel().title(title).description(text).datasource(PROMETHEUS).unit(unit).min(0)
    panel.span(width).height(8).legend(_legend()).interval(_BAR)
    panel.tooltip(common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI))
    if top is not None:
        panel.max(top)
    if stacked:
        panel.draw_style(common.GraphDrawStyle.BARS).fill_opacity(70).line_width(0)
        panel.stacking(common_builders.StackingConfig().mode(common.StackingMode.NORMAL).group("A"))
    else:
        panel.fill_opacity(5).line_width(2).show_points(common.VisibilityMode.AUTO)
    for number, (legend, expression) in enumerate(expressions.items()):
        query = _query(expression, number).legend_format(legend).range()
        panel.with_target(query.exemplar(legend in exemplars))
    return panel


def heat(
    title: str, text: str, expression: str, unit: str = "short", *, width: int = 12, repeat: str | None = None
) -> heatmap.Panel:
    """A heat map with exemplars. ``expression``: increases by ``le``."""
    panel = heatmap.Panel().title(title).description(text).datasource(PROMETHEUS).span(width).height(8)
    panel.interval(_BAR).calculate(False).show_tooltip().hide_y_histogram().exemplars_color("rgba(255,120,10,0.9)")
    panel.y_axis(heatmap.YAxisConfig().unit(unit).axis_placement(common.AxisPlacement.LEFT))
    panel.color(heatmap.HeatmapColorOptions().mode(heatmap_model.HeatmapColorMode.SCHEME).scheme("Blues").steps(64))
    if repeat is not None:
        panel.repeat(repeat).repeat_direction("h")
    query = _query(expression, 0).legend_format("{{le}}").range().exemplar(True)
    return panel.with_target(query.format(prometheus_model.PromQueryFormat.HEATMAP))


def number(
    title: str,
    text: str,
    expression: str,
    unit: str = "short",
    *,
    width: int = 4,
    steps: Steps = (),
    nothing: str = "–",
) -> stat.Panel:
    """A number. ``steps``: colours by minimum value; ``nothing``: text without data."""
    panel = stat.Panel().title(title).description(text).datasource(PROMETHEUS).unit(unit).span(width).height(4)
    panel.graph_mode(common.BigValueGraphMode.NONE).color_mode(common.BigValueColorMode.VALUE)
    panel.reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"])).no_value(nothing)
    panel.thresholds(_thresholds(steps))
    return panel.with_target(_query(expression, 0).instant())


def listing(
    title: str, text: str, labels: Expressions, columns: Expressions, *, width: int = 12, height: int = 8
) -> table.Panel:
    """A table: a line per combination of ``labels``, a column per expression."""
    panel = table.Panel().title(title).description(text).datasource(PROMETHEUS).span(width).height(height)
    headings = dict(labels)
    for number, (heading, expression) in enumerate(columns.items()):
        query = _query(expression, number).instant().format(prometheus_model.PromQueryFormat.TABLE)
        panel.with_target(query)
        headings[f"Value #{_ref(number)}" if len(columns) > 1 else "Value"] = heading
    panel.with_transformation(model.DataTransformerConfig(id_val="merge", options={}))
    options = {"excludeByName": {"Time": True}, "renameByName": headings}
    return panel.with_transformation(model.DataTransformerConfig(id_val="organize", options=options))


def coloured(
    panel: table.Panel,
    column: str,
    steps: Steps,
    unit: str = "short",
    words: Expressions | None = None,
) -> table.Panel:
    """Colour a column's cells by value; ``words`` replace values."""
    properties = [
        model.DynamicConfigValue(id_val="unit", value=unit),
        model.DynamicConfigValue(id_val="thresholds", value=_thresholds(steps).build()),
        model.DynamicConfigValue(id_val="custom.cellOptions", value={"type": "color-text"}),
    ]
    if words is not None:
        shown = {value: {"text": text, "color": BAD, "index": n} for n, (value, text) in enumerate(words.items())}
        properties.append(model.DynamicConfigValue(id_val="mappings", value=[{"type": "value", "options": shown}]))
    return panel.override_by_name(column, properties)


def linked(panel: table.Panel, column: str, title: str, url: str) -> table.Panel:
    """Make a column's cells links. ``url``: Grafana template, such as ``${__data.fields.agent}``."""
    link = {"title": title, "url": url}
    return panel.override_by_name(column, [model.DynamicConfigValue(id_val="links", value=[link])])


def _query(expression: str, number: int) -> prometheus.Dataquery:
    return prometheus.Dataquery().expr(expression).ref_id(_ref(number)).datasource(PROMETHEUS)


def _ref(number: int) -> str:
    return "ABCDEFGHIJ"[number]


def _legend() -> common_builders.VizLegendOptions:
    legend = common_builders.VizLegendOptions().show_legend(True).display_mode(common.LegendDisplayMode.LIST)
    return legend.placement(common.LegendPlacement.BOTTOM)


def _thresholds(steps: Steps) -> dashboard.ThresholdsConfig:
    first = model.Threshold(value=None, color=PLAIN)
    found = [first, *(model.Threshold(value=value, color=color) for value, color in steps)]
    return dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(found)
