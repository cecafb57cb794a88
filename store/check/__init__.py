"""Is all of it sound? Checks, statistics, and one consistent position of all logs."""
