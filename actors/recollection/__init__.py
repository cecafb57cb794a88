"""What an agent recalls of its memories: lists, levels of summaries, rankings, and what each memory rests on. Pure."""
