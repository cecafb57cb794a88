"""MemGPT as an event-sourced actor system: agents whose whole state is an append-only log of typed events."""
