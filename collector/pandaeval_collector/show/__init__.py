"""What people and programs look at: the HTTP API, the live page, the MCP server and the HTML reports.

Imports analysis, base, config, judge, pipeline, runs, scoring, store, trials.
"""

API = "/api/v1"
"""The path of the API on the HTTP listener."""
