"""Pages that have something done: forks, reruns and their jobs, and pages about the server itself."""
