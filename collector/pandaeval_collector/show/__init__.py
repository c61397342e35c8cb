"""What people and programs look at: API, live page, MCP and reports. Imports runs and all rooms below it."""
