"""Answer HTTP: the server, its native API, and the commands that start it and look after its keys."""
