"""everlog as an MCP server: agents, their memory and messages to them, for programs of other makers."""
