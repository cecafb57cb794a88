"""How is the index of memories served? The service over LanceDB, and its embedder."""
