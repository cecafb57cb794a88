"""Commands about MCP servers: which there are, what they offer, and what the operator accepts of that."""
