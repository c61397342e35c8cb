"""The HTTP API of results, for pages and programs."""
