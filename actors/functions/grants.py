"""Grants of the user, passed each time and never recorded: a log grants nothing.

Used by `extras.py`, from which all other code imports the grants.
"""

import msgspec


class Grants(msgspec.Struct, frozen=True):
    """Permissions of functions that reach outside the log; by default none."""

    workspace: str = ""
    """Path of the folder whose text files may be read and added to; empty: none."""
    hosts: tuple[str, ...] = ()
    """HOST (ports 80 and 443) or HOST:PORT that may be sent requests; an IPv6 address is written in brackets."""
    helper: str = ""
    """Name of the model that `message_chatgpt` asks; empty: the agent's own."""


NO_GRANTS = Grants()
"""No permissions."""
