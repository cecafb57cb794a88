"""Run agents in this process: hosts of one agent or many, their commands, timers and figures."""
