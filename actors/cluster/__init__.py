"""Who runs agents under Ray? Actors, the supervisor over them, and the one file that imports Ray."""
