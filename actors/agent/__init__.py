"""Run an agent's steps, turns and commands, and write its log."""
