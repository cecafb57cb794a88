"""Read what was committed: look up runs by the id of their input, and follow records as they are written."""
