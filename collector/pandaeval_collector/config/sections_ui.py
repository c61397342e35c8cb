"""The page on which people look at scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from pandaeval_collector.base.section import PositiveDuration, Section, Text, Url


class Ui(Section):
    """The page at `/` of server.http, under the same token and names as the API."""

    enabled: bool = Field(default=True, description="Show the page.")
    url: Url | None = Field(
        default=None, description="Address of the page as people open it, behind a proxy perhaps; for links to it."
    )
    refresh: PositiveDuration = Field(default=10.0, description="Time between two looks for new results.")
    links: Mapping[Text, Annotated[Url, Field(max_length=2000)]] = Field(
        default={},
        description="Addresses in other programs by name, such as Jaeger: http://localhost:16686/trace/{trace_id}; in "
        "braces: trace_id, session_id, agent, service, start_ms, end_ms.",
    )
