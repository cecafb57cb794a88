"""Suggestions for the text before the cursor. Pure.

Used by `terminal_editor`, which shows them, and by the prompts that make them. Nothing here knows the editor's library,
so what a prompt suggests is tested without a terminal.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple


class Suggestion(NamedTuple):
    """One text that can stand in place of the last characters before the cursor."""

    text: str
    replaced: int
    """Number of characters before the cursor that the text replaces."""
    about: str = ""
    """Description beside the text; empty for none."""


Suggest = Callable[[str], Iterable[Suggestion]]
"""Function from the text before the cursor to suggestions, the best first."""


def beginning_with(typed: str, texts: Iterable[tuple[str, str]]) -> list[Suggestion]:
    """Return those of `texts` (text, description) that begin with `typed`, whatever their case, in their order."""
    low = typed.casefold()
    return [Suggestion(text, len(typed), about) for text, about in texts if text.casefold().startswith(low)]
