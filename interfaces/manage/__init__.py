"""Commands that create, change, copy and delete agents, their memory and their documents."""
