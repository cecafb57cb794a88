"""Commands that look after an installation: they show its defaults, and check its parts."""
