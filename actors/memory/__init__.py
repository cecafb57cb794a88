"""Memory of agents: core memory, shared blocks, recall memory, the archive and its documents."""
