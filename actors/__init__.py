"""WHAT HAPPENS NEXT: decide, functions, gateway, heartbeats and hosts.

Decide is pure: state and input in, events out. So are the renderers and the parsers. Effects live at the edge: one file
imports ray, one file (`real.py`) reads the wall clock and makes ids, one file imports openai. Every queue here has a
limit and refuses when it is full.

May import `projections`, `store` and `events`. Never interfaces. Held by `tests/tidy`.
"""
