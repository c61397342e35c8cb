"""Where the API is."""

API = "/api/v1"
"""Its path on the HTTP listener."""
