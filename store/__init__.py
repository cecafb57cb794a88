"""WHERE IT IS KEPT: the log, its segments, its fences, and the archival vectors.

The only room that touches disk. It keeps records and gives them back in order; it knows envelopes and bytes, and never
what an event means to an agent. Its promises are numbered in the contract, every implementation runs the same contract
suite, and the in-memory log is the reference. LanceDB is imported in one file here, and never at import of the room.

May import `events`. Never projections, actors or interfaces. Held by `tests/tidy`.
"""
