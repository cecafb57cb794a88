"""A process to be killed: it sends messages to one agent, and prints each record as soon as it is durable.

    python -m tests.soak.killed_sender STORE FIRST COUNT

sends messages FIRST to FIRST + COUNT (exclusive) with the offline model in a small window, so that heartbeats, memory
edits, searches and summaries all happen. An interrupted turn of an earlier process is finished first.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.ports.real_clock import RealClock, RealIds
from everlog.events import Record, UserMessage
from everlog.store import FileStore

TEXTS = (
    "Hello number {n}, my boat is called Ada{n}.",
    "What did we say about boats? ({n})",
    "I live in Oslo, street {n}, and I like the sea, the wind and long walks along the water in the evening.",
    "keep this: the code of lock {n} is {n}{n}.",
    "What is my boat called? ({n})",
)


def shown(records: Sequence[Record]) -> None:
    """Print one line for each durable record."""
    for record in records:
        print(json.dumps({"type": record.type, "id": record.event_id, "text": record.text}), flush=True)


async def main(folder: str, first: int, count: int) -> None:
    """Finish an interrupted turn, then send the messages one after the other."""
    clock, ids = RealClock(), RealIds()
    store = FileStore.create(Path(folder), clock.now, ids.new(clock.now()))
    async with LocalSystem(store).agent("sam", Settings(window=4096), command="driver", on_commit=shown) as agent:
        await agent.run()
        for number in range(first, first + count):
            await agent.receive(UserMessage(text=TEXTS[number % len(TEXTS)].format(n=number)))
            await agent.run()
    print(json.dumps({"type": "end"}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
