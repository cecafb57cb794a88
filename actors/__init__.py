"""WHAT HAPPENS NEXT: an agent's steps, functions and models. Decisions are pure; effects are passed as arguments."""
