"""WHAT CAN BE TRUE: the typed events, their codec and their upcasters.

An event is an immutable fact in the past tense, one `msgspec.Struct` type per kind, with a short wire tag that is
written by hand and never changes. A shape is never edited: a new version is added and the old one is upcast.

This room is pure. It imports the standard library and msgspec, and nothing of ours. It reads no clock, no disk, no
randomness: whatever varies arrives as an argument. Held by `tests/tidy`.
"""
