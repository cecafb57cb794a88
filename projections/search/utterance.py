"""Define one thing that was said, as a plain value: importing it loads no index.

Used by `talk_cache`, which collects them, and by `talk_index`, which indexes them.
"""

from typing import NamedTuple


class Utterance(NamedTuple):
    """One thing that was said: a row of `search_talk`."""

    seq: int
    time: int
    """Microseconds UTC."""
    role: str
    name: str
    text: str
    ref: str
