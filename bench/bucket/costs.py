"""Count the requests of a log in a bucket at several loads of a shard, and say what a million messages cost.

Run as `python -m bench.bucket.costs [--quick]`. The table of docs/reference/cluster.md is a run of it. The bucket is in
memory, and each request takes 20 ms: the longer a request takes, the more commits share the next one. Counted are the
requests of the log alone; times are not figures here.
"""

import sys
from collections import Counter
from collections.abc import Sequence

import msgspec

from bench.bucket.object_store import COMMITS, THINK_S, Shard
from bench.support.harness import Figure, Line, noise, options, show, workspace
from everlog.store.base.store_constants import SEGMENT_BYTES_MAX

WRITE_USD, READ_USD = 5.0, 0.4
"""Dollars for a million puts or lists, and for a million gets or looks: S3 Standard in us-east-1, in 2026."""
WRITES = ("list", "put")
"""Requests that cost as much as a put."""
MESSAGE_BYTES = 4_100
"""Bytes of a message in the log, with its model replies, as `everlog fleet` prints them."""
LOADS = (1, 20, 200, 1000)
"""Numbers of agents of a shard, each of which waits THINK_S between two messages; one agent alone does not wait."""


class Requests(msgspec.Struct, frozen=True):
    """Requests of one load."""

    per_s: float
    """Messages a second."""
    messages: float
    talking: Counter[str]
    sealing: Counter[str]
    """Requests that seal one segment."""

    def writes(self) -> float:
        """Return the puts and lists of a message, with its part of the sealing."""
        return self._of_a_message(set(WRITES))

    def reads(self) -> float:
        """Return the gets and looks of a message, with its part of the sealing."""
        return self._of_a_message({*self.talking, *self.sealing} - set(WRITES))

    def _of_a_message(self, kinds: set[str]) -> float:
        talking = sum(self.talking[kind] for kind in kinds)
        sealing = sum(self.sealing[kind] for kind in kinds)
        return talking / self.messages + sealing * MESSAGE_BYTES / SEGMENT_BYTES_MAX


def usd_a_million(writes: float, reads: float) -> float:
    """Return the dollars of a million messages that make so many requests each."""
    return WRITE_USD * writes + READ_USD * reads


def counted(agents: int, seconds: float) -> Requests:
    """Return the requests of a shard of so many agents that talk for `seconds`."""
    shard = Shard(agents)
    talk = shard.talk(seconds, THINK_S if agents > 1 else 0.0)
    talking = Counter(shard.bucket.requests)
    shard.bucket.requests.clear()
    shard.log.seal()
    sealing = Counter(shard.bucket.requests)
    shard.log.close()
    return Requests(talk.messages / talk.seconds, talk.messages, talking, sealing)


def _row(agents: int, found: Requests) -> Line:
    writes, reads = found.writes(), found.reads()
    requests = f"{writes:.3g} puts and lists, {reads:.3g} gets and looks"
    return Line(
        f"agents: {agents}",
        f"${usd_a_million(writes, reads):.3g} a million",
        runs=f"{found.per_s:.3g} messages/s; {requests}",
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Count and print."""
    args = options("bucket.costs", "Requests and dollars of a log in a bucket, by the load of a shard.", argv)
    with workspace() as folder:
        machine = noise(folder)
    found = {agents: counted(agents, 3 if args.quick else 15) for agents in LOADS}
    figures = [
        Figure(f"usd_{agents}_agents", usd_a_million(one.writes(), one.reads()), "USD", WRITE_USD * COMMITS)
        for agents, one in found.items()
    ]
    show("bucket.costs", machine, figures, [_row(agents, one) for agents, one in found.items()])
    return 0


if __name__ == "__main__":
    sys.exit(main())
