"""`everlog replay`: play back an agent's events, in a console on a terminal, else as lines. Only a fork writes.

Called by `cli.command_run`.
"""

import asyncio
import sys
from argparse import Namespace
from functools import partial

from everlog.actors.agent.local_system import AgentView
from everlog.events import BadInput
from everlog.interfaces.common.bootstrap import agents_of, open_view, system_of
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import refresh_copy
from everlog.interfaces.output import json_shapes
from everlog.interfaces.output.terminal_output import console
from everlog.interfaces.replay_console import load_timeline
from everlog.interfaces.replay_console.console_loop import ForkCallback, drive
from everlog.interfaces.replay_console.console_state import Console
from everlog.interfaces.replay_console.plain_output import print_records, shape
from everlog.interfaces.replay_console.playback import Playback
from everlog.interfaces.replay_console.timeline import ReplayTimeline
from everlog.interfaces.show.show_commands import POLL_S


def replay(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog replay` and return its exit code."""
    with open_view(system_of(args, world), args.name) as view:
        _check(args, view)
        story = load_timeline.begun(view, None if args.last is None else min(args.last, view.head.seq))
        if args.json or not _is_interactive():
            asyncio.run(_play(args, world, view, story))
        else:
            _watch(args, world, view, story)
    return 0


def _check(args: Namespace, view: AgentView) -> None:
    """Raise BadInput if the range has no records; with --follow it may end after the head."""
    head = view.head.seq
    last = head if args.last is None else args.last
    if args.first > min(head, last) or (last > head and not args.follow):
        raise BadInput(
            f"{view.agent_id!r} has no records {args.first} to {last}: it has 1 to {head}, the head, and --from must "
            "not be later than --to."
        )


def _is_interactive() -> bool:
    """Return True if stdin and stdout are a terminal that can show a full screen."""
    return sys.stdin.isatty() and sys.stdout.isatty() and not console().is_dumb_terminal


async def _play(args: Namespace, world: CommandEnvironment, view: AgentView, story: ReplayTimeline) -> None:
    """Print all records at once; with --follow, print new ones until Ctrl-C or --to."""
    out = console()
    first = args.first
    while True:
        seqs = range(first, story.last + 1)
        if args.json:
            for seq in seqs:
                print(json_shapes.line(shape(story, seq)))
        else:
            print_records(story, seqs, out)
        sys.stdout.flush()
        first = story.last + 1
        if not args.follow or story.last == args.last:
            return
        while not _grows(args, view, story):
            await world.sleep(POLL_S)


def _grows(args: Namespace, view: AgentView, story: ReplayTimeline) -> bool:
    """Add records that have come to the story. Return True if there were any."""
    refresh_copy(args, view.agent_id)
    return load_timeline.more(view, story, args.last)


def _watch(args: Namespace, world: CommandEnvironment, view: AgentView, story: ReplayTimeline) -> None:
    from everlog.interfaces.replay_console.terminal_screen import TerminalScreen

    playback = Playback(seq=args.first, first=args.first, last=story.last, speed=args.speed, follow=args.follow)
    grow = partial(_grows, args, view, story)
    with TerminalScreen() as screen:
        drive(Console(playback=playback), story, screen, world.clock, fork=_forker(args, world), grow=grow)


def _forker(args: Namespace, world: CommandEnvironment) -> ForkCallback:
    """Return the function by which the console forks the agent."""

    async def forked(seq: int, new_name: str) -> None:
        async with agents_of(args, world) as system:
            await system.fork(args.name, new_name, at=seq)

    return lambda seq, new_name: asyncio.run(forked(seq, new_name))
