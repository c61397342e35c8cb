"""The HTTP API: what was scored, for pages and programs."""
