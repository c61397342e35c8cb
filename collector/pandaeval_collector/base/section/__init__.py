"""What a section of the configuration is made of, for whoever has settings: our own parts, and exporters of third
parties. Values are checked, shown, documented and read from the environment by what their fields say here."""

from pandaeval_collector.base.section.types import (
    Amount,
    Count,
    Duration,
    Endpoint,
    EnvName,
    FilePath,
    PositiveDuration,
    Section,
    Share,
    Size,
    Text,
    Url,
    format_duration,
    format_size,
    group,
    parse_duration,
    parse_size,
)

__all__ = [
    "Amount",
    "Count",
    "Duration",
    "Endpoint",
    "EnvName",
    "FilePath",
    "PositiveDuration",
    "Section",
    "Share",
    "Size",
    "Text",
    "Url",
    "format_duration",
    "format_size",
    "group",
    "parse_duration",
    "parse_size",
]
