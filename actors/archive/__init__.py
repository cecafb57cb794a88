"""Serve the index of memories: the service over LanceDB, and its embedder."""
