"""A process of the tour that is killed in the middle of a turn: one everlog command with a model that never answers.

Run as `python -m everlog.interfaces.tour.slow_process TIME IDS WORD...`. When the model is asked, the process prints
`ASKED` and waits. It ends when its stdin is closed, so that it cannot outlive the tour.

Started by `tour_shell`, which reads the line `ASKED`.
"""

import asyncio
import os
import sys
from typing import NoReturn

import msgspec

from everlog.actors.ports.effects import NOTHING, DeltaCallback, Spent
from everlog.interfaces.cli.command_run import run
from everlog.interfaces.tour.tour_clock import TourClock, TourIds, TourModel, environment

ASKED = "asked"


class SlowModel(TourModel):
    """A model that reports a request on stdout and never answers."""

    async def ask(self, request: bytes, *, on_delta: DeltaCallback | None = None, spent: Spent = NOTHING) -> NoReturn:
        """Wait until stdin is closed, then end the process."""
        print(ASKED, flush=True)
        await asyncio.to_thread(sys.stdin.read)
        os._exit(1)


def main(words: list[str]) -> int:
    """Run the command `words[2:]` at the time `words[0]`, with ids that count from `words[1]`. Return its exit code."""
    world = environment(TourClock(int(words[0])), TourIds(int(words[1])))
    return run(words[2:], msgspec.structs.replace(world, model=lambda _name, _url: SlowModel()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
