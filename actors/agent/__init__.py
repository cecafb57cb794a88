"""What happens next? An agent's step and turn, what it is told to do, and how its log is written."""
