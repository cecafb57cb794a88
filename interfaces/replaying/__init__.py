"""An agent watched again: its story, the player that goes through it, and the frame that shows a moment of it.

Everything here is pure but for `screen.py`, which owns the terminal.
"""
