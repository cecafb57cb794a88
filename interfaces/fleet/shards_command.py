"""`everlog cluster shards`: show the number of shards of a store, or change it and move the agents.

Called by `cli.command_run`. The number is changed at once and durably. The agents are moved by the cluster's
supervisor, or by this process if no cluster runs; if it ends early, the same command continues.
"""

import asyncio
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence

from everlog.actors.api import open_system
from everlog.actors.sharding.shard_mover import ShardingRuntime, ShardMoves, misplaced
from everlog.events import ClusterError
from everlog.interfaces.common.bootstrap import ports_of
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import root_of, store_of
from everlog.interfaces.common.plural import plural
from everlog.interfaces.output import json_shapes, progress_bar
from everlog.store import FileStore, is_shared

LOOK_S = 0.2
"""Seconds between two looks at the progress."""


def shards(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `cluster shards`."""
    store = store_of(args, world)  # raises if the store does not exist, and does not create it
    if args.number is None:
        _show(args, store)
        return 0
    store.set_shards(args.number)
    before = len(misplaced(store))
    moves = asyncio.run(_moved(args, world, store, before)) if before else ShardMoves()
    left = len(misplaced(store))
    _report(args, store, max(before - left, 0), left, moves.faults)
    return 1 if left else 0


def _show(args: Namespace, store: FileStore) -> None:
    agents = Counter(place for place in store.assigned().values() if is_shared(place))
    left = len(misplaced(store))
    if args.json:
        shape = {"shards": store.shards, "agents": dict(sorted(agents.items())), "misplaced": left}
        print(json_shapes.line(shape))
        return
    print(sanitize(f"The store has {plural(store.shards, 'shard')}."))
    for shard, count in sorted(agents.items()):
        print(sanitize(f"{shard}  {plural(count, 'agent')}"))
    if left:
        again = f"`everlog cluster shards {store.shards}`"
        print(sanitize(f"Not moved yet: {plural(left, 'agent')}. They work meanwhile; {again} continues."))


def _report(args: Namespace, store: FileStore, moved: int, left: int, faults: Sequence[str]) -> None:
    shards = store.shards  # another command may have changed the number meanwhile
    if args.json:
        print(json_shapes.line({"shards": shards, "moved": moved, "misplaced": left, "faults": list(faults)}))
        return
    print(sanitize(f"The store has {plural(shards, 'shard')} now; moved {plural(moved, 'agent')}."))
    if shards != args.number:
        print(sanitize(f"Another command changed the number after this one had changed it to {args.number}."))
    if left:
        print(sanitize(f"Not moved yet: {plural(left, 'agent')}. They work meanwhile; the same command continues."))
    for fault in faults:
        print(sanitize(f"  {fault}"))


async def _moved(args: Namespace, world: CommandEnvironment, store: FileStore, total: int) -> ShardMoves:
    """Have the agents moved, and wait until that is done. Return how it ended."""
    async with open_system(root_of(args), runtime=args.runtime, ports=ports_of(world), timers=False) as system:
        runtime = system.runtime
        if not isinstance(runtime, ShardingRuntime):
            raise ClusterError("This cluster cannot move agents between shards: it runs an everlog without that.")
        with progress_bar.shown("moving agents") as progress:
            moves = await runtime.move_to_shards()
            while moves.running:
                await asyncio.sleep(LOOK_S)
                moves = await runtime.move_to_shards(begin=False)
                progress(max(total - len(misplaced(store)), 0), total)
        return moves
