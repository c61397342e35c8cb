"""MCP tools for coding agents. All tools only read."""
