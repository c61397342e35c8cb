"""Everything that shows results: the HTTP API, the live page, the MCP server and the HTML report.

Imports analysis, base, config, judge, labels, pipeline, runs, scoring, store.
"""

API, MCP, PAGE, RUNBOOK = "/api/v1", "/mcp", "/", "/runbook"
"""The paths on the HTTP listener."""
