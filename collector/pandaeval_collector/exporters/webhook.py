"""Settings of the webhook for incidents. The reader process posts, because incidents contain content."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal
from urllib.parse import urlsplit

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.section import EnvName, Section
from pandaeval_collector.exporters import Exporter, Surroundings


class Webhook(Section):
    """Posts about new, returned and growing incidents to a URL."""

    url_env: EnvName | None = None
    """Name of the environment variable with the URL. If null, the webhook is off."""
    format: Literal["json", "slack"] = "json"
    """Format of the posts. json contains all fields of the incidents. slack is a text, for Slack and compatible
    programs."""


SETTINGS = Webhook


def exporters(settings: Webhook, around: Surroundings) -> Iterator[Exporter]:
    """Check the URL. Raises :class:`UserError` without the URL, which may be secret."""
    if settings.url_env is not None:
        url = urlsplit(around.environ.get(settings.url_env, "").strip())
        if url.scheme not in ("http", "https") or not url.hostname:
            raise UserError(f"exporters.webhook.url_env: {settings.url_env} does not contain a URL with http or https")
    return iter(())
