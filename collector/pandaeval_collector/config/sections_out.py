"""Configuration of exporters and page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, create_model

from pandaeval_collector.base.section import Section, Text, Url, group
from pandaeval_collector.exporters.found import Way, ways

if TYPE_CHECKING:
    from pandaeval_collector.exporters.otlp import Otlp
    from pandaeval_collector.exporters.prometheus import Prometheus
    from pandaeval_collector.exporters.webhook import Webhook


class Spans(Section):
    """Evaluation spans, for all exporters."""

    failed_status: Literal["error", "unset"] = "error"
    """Status of an evaluation span with a failed result. With error, Jaeger and Tempo show the span in red. With unset,
    the span has no status."""


class Common(Section):
    """Destinations of results."""

    if TYPE_CHECKING:  # the found sections that other parts read too
        otlp: Otlp
        prometheus: Prometheus
        webhook: Webhook

    @property
    def scrape_results(self) -> bool:
        """Whether the scrape endpoint shows scores besides the collector's own health figures."""
        if self.prometheus.results is None:
            return self.otlp.endpoint_of("metrics") is None
        return self.prometheus.results


def _field(way: Way) -> Any:
    if way.settings is None:
        meaning = "Ignored: the package of this exporter cannot be used (see the log)."
        return Mapping[str, Any], Field(default={}, description=meaning)
    return way.settings, group(way.settings)


if TYPE_CHECKING:
    Exporters = Common
else:
    Exporters = create_model(
        "Exporters", __base__=Common, __doc__=Common.__doc__, **{way.name: _field(way) for way in ways()}
    )


class Ui(Section):
    """The page at `/` of server.http."""

    enabled: bool = True
    """Show the page."""
    url: Url | None = None
    """Public address of the page, for links in spans, log events and alerts. If null, only alerts have links, to the
    address of server.http."""
    links: Mapping[Text, Annotated[Url, Field(max_length=2000)]] = {}
    """Links to other programs, by name of the program. A link can contain the placeholders {trace_id}, {session_id},
    {agent}, {service}, {start_ms} and {end_ms}."""
