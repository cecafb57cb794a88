"""What the person at the keyboard allows. It is given each time and never recorded: a log grants nothing."""

import msgspec


class Grants(msgspec.Struct, frozen=True):
    """What functions that reach outside may do; by default nothing."""

    workspace: str = ""
    """Path of the folder whose text files may be read and added to; empty: none."""
    hosts: tuple[str, ...] = ()
    """HOST (ports 80 and 443) or HOST:PORT that may be sent requests; an IPv6 address stands in brackets."""
    helper: str = ""
    """Name of the model that `message_chatgpt` asks; empty: the agent's own."""


NO_GRANTS = Grants()
"""Nothing is allowed."""
