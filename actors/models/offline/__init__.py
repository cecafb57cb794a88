"""The embedded stand-in for a language model: rules, and plain that they are. No key, no network, no clock, no chance.

`model` is the endpoint (request bytes to answer bytes), `turn` plans one reply, the others know one thing each.
"""

from everlog.actors.models.offline.model import MODEL, Offline, reply

__all__ = ["MODEL", "Offline", "reply"]
