"""Was it really so? An agent rebuilt, its requests verified, two moments compared."""
