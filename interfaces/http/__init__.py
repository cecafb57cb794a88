"""How a program in any language reaches agents: the HTTP server, its native API, and the command that starts it."""
