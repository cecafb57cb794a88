"""Search memories: the service over LanceDB, the meanings of messages, and their embedder."""
