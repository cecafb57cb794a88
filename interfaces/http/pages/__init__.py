"""Pages for people: the description of the API."""
