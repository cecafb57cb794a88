"""The web console: pages for people, rendered here, that read agents at any moment."""
