"""everlog as an A2A server: agents for programs of other makers that speak the Agent2Agent protocol."""
