"""The embedded stand-in for a language model: rules, and plain that they are. No key, no network, no clock, no chance.

It knows what a first hour needs: a name, facts, a to-do list, searches and summaries. `model` is the endpoint (request
bytes to answer bytes), `request` and `completion` are its two ends, `answers` decides, the others know one thing each.
"""

from everlog.actors.models.offline.offline_model import MODEL, OfflineModel, reply

__all__ = ["MODEL", "OfflineModel", "reply"]
