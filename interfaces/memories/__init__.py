"""Show, derive and correct what an agent remembers."""
