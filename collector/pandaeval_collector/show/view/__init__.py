"""What every door shows of a stored thing, decided once: a result and the order of results, a trace's and a session's
row, counts and rates, and each value as text. Pure functions; API, page, MCP, commands and reports draw from them."""
