"""Run agents under Ray: actors, the supervisor over them, and the one file that imports Ray."""
