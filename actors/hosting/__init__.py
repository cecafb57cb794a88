"""Who runs agents in this process? Hosts of one agent or many, their commands, timers and figures."""
