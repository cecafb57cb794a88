"""Embedded stand-in for a language model: it works by rules, and says so. It needs no key and no network, and uses
neither the clock nor random numbers.

It covers a first hour with everlog: a name, facts, a to-do list, searches and summaries. `offline_model` is the
endpoint (request bytes to answer bytes), `request` and `completion` parse and write these bytes, `answers` decides, and
each other file serves one subject.
"""

from everlog.actors.models.offline.offline_model import MODEL, OfflineModel, reply

__all__ = ["MODEL", "OfflineModel", "reply"]
