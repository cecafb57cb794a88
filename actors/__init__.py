"""WHAT HAPPENS NEXT: the agent's step, its functions, its models. Decisions are pure, effects are arguments."""
