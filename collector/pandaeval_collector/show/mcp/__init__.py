"""MCP tools for coding agents. They read; one starts runs within a budget."""
