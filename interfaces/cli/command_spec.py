"""Define `CommandSpec`: what the parser and the help know of a command. Imports nothing heavy.

Used by the args_ files, by `command_parser` and by `docs/make`.
"""

import argparse
from collections.abc import Callable
from typing import NamedTuple

Add = Callable[[argparse.ArgumentParser], None]
"""Function that adds arguments to the parser of a command."""


class CommandSpec(NamedTuple):
    """One command of the command line."""

    name: str
    """One word, or two for a command of a group."""
    handler: str
    """Function that runs the command, as "module:function" below `everlog.interfaces`."""
    summary: str
    """Verb and object, without a capital letter or a full stop."""
    example: str
    """Command line that the parser accepts."""
    arguments: tuple[Add, ...]
    more: str = ""
    """Paragraph of the help after the summary."""
    reads_only: bool = False
    """True if the command writes nothing: Ctrl-C then ends it without a message about the log."""
    reads_defaults: bool = True
    """False if the command works without the files of defaults, even where they hold a mistake."""
    usage: str = ""
    """Positional arguments in the usage line, where these differ from what the parser requires."""
