"""Shared pure views of results, rows, counts, rates and values, for API, page, MCP, commands and reports."""
