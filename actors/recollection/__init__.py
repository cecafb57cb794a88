"""Views of an agent's memories: lists, levels of summaries, rankings, and trees of what they rest on. Pure."""
