"""What can an agent do? Functions of its memory, of its user, and those that reach outside."""
