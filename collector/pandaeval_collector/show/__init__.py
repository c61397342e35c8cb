"""What people and programs look at: the HTTP API, the live page, the MCP server and the HTML reports.

Imports analysis, base, config, judge, pipeline, runs, scoring, store, trials.
"""

API, MCP, PAGE, RUNBOOK = "/api/v1", "/mcp", "/", "/runbook"
"""The paths on the HTTP listener."""
