"""The commands that have an agent do something: their arguments, and what the help says. Imports nothing heavy."""

import argparse

from everlog.interfaces.cli.args_shared import (
    CommandSpec,
    base_url,
    blocks,
    grant_options,
    json,
    model,
    name,
    name_or_sam,
    new_name,
    opening,
    runtime,
    system,
    tools,
    window,
)
from everlog.interfaces.common import argument_values

_CANCELLING = """\
What the turn has left in the log stays. A function that reaches outside may
have done what it was asked to: the agent is told that nobody knows."""
_TIMERS = """\
Timers go off while a cluster runs (`everlog up`), or while `everlog chat` has
the agent open. What was missed in between comes once, and is marked late. The
agent can pause its timers with pause_heartbeats."""
_RERUN = """\
The agent is forked just before a record of its past, and the fork is told again
what the agent was told from there on, with whatever you change. Calls that were
made then, with the same arguments, get the result of then. Of all others those
that act outside are refused, unless you say --live-tools; those that only read
are run where --tools gives them. The agent itself is left as it is."""


def _sending(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="?", help="what is said; - reads it from stdin")
    parser.add_argument(
        "--role",
        metavar="ROLE",
        default="user",
        choices=("user", "system", "event", "login", "heartbeat"),
        help="as whom it is said: user, system, event (something that happened), login, heartbeat (user)",
    )
    parser.add_argument(
        "--id", metavar="UUID", type=argument_values.event_id, help="id of the input: sent twice, it counts once"
    )
    parser.add_argument("--speaker", metavar="WHO", default="", help="who of several users says it")
    parser.add_argument("-v", "--verbose", action="store_true", help="show thoughts and functions too")


def _cancelling(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--waiting", action="store_true", help="cancel the turns that wait for it too")


def _timing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="?", help="what the agent is told when the timer goes off")
    parser.add_argument(
        "--every", metavar="DURATION", type=argument_values.heartbeat_seconds, help="how often, as 30m or 1h30m (once)"
    )
    first = parser.add_mutually_exclusive_group()
    first.add_argument(
        "--at", metavar="TIME", type=argument_values.moment, help="when first, an ISO time (now and --every)"
    )
    first.add_argument(
        "--after", metavar="DURATION", type=argument_values.duration, help="after how long first, as 10m"
    )
    parser.add_argument(
        "--timer", metavar="TIMER", type=argument_values.words, help="its name: a timer of that name is replaced"
    )
    parser.add_argument(
        "--cancel", metavar="TIMER", type=argument_values.words, help="cancel the timer of that name instead"
    )


def _rerunning(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from",
        dest="first",
        metavar="SEQ|TIME",
        help="the first record that is done again, or the first from that time on; inside a turn: its beginning",
    )
    new_name(parser)
    parser.add_argument("--turns", metavar="N", type=argument_values.count, help="how many turns, at most (all)")
    parser.add_argument(
        "--recorded",
        action="store_true",
        help="ask no model: give the recorded replies, as long as each request is the one of then",
    )
    parser.add_argument(
        "--live-tools", action="store_true", help="let functions act outside for calls that were not made then"
    )
    parser.add_argument("--report", action="store_true", help="run nothing: compare NAME with NEW, a fork of it")
    group = parser.add_argument_group("what is otherwise")
    model(group, "another model (that of then)")
    base_url(group)
    window(group)
    system(group)
    blocks(group, "another text in a memory block, or a new block (repeatable)")
    parser.set_defaults(runtime="local", persona=None, human=None, zone=None, preset=None, verify_first=None)


COMMANDS = (
    CommandSpec("chat", "talk.chat:chat", "talk to an agent; creates it if need be", "everlog chat sam",
            (name_or_sam, opening)),
    CommandSpec("send", "talk.send:send", "say one thing to an agent and print its answer",
            'everlog send sam "Hi, my name is Chad and I sail"', (name, _sending, json, opening)),
    CommandSpec("cancel", "talk.cancel_command:cancel", "end the turn that an agent is at", "everlog cancel sam",
            (name, _cancelling, runtime, json), _CANCELLING),
    CommandSpec("timer", "talk.timer_commands:timer", "have an agent woken at a time, or every so often",
            'everlog timer sam "Does it rain?" --every 30m', (name, _timing, json, runtime), _TIMERS),
    CommandSpec("rerun", "talk.rerun_command:rerun", "what if: tell a fork again what the agent was told, and compare",
            "everlog rerun sam --from 40 --model gpt-4o --new-name sam-otherwise",
            (name, _rerunning, tools, grant_options, json), _RERUN),
)  # fmt: skip
"""In the order of the help."""
