"""Arguments and help of the commands that run turns of an agent. Imports nothing heavy.

Used by `command_parser`, which is loaded at each start of `everlog`.
"""

import argparse

from everlog.interfaces.cli.args_grants import grant_options, tools
from everlog.interfaces.cli.args_selection import label_of_each
from everlog.interfaces.cli.args_shared import (
    OneModel,
    base_url,
    blocks,
    json,
    model,
    name,
    name_or_sam,
    new_name,
    opening,
    runtime,
    system,
    window,
)
from everlog.interfaces.cli.command_spec import CommandSpec
from everlog.interfaces.common import argument_values

_CANCELLING = """\
The records of the turn stay in the log. A running function that acts outside
may or may not have completed; the agent is told that its outcome is unknown."""
_DECIDING = """\
A call waits if a rule of the agent says so (`everlog configure --approval`), or
the function itself. When its time is over, after a week by default, it is
refused. The first decision holds. Functions of your own need --tools again."""
_TIMERS = """\
Timers fire while a cluster runs (`everlog up`) or while `everlog chat` has the
agent open. If a timer was missed, it fires once, marked as late. The agent can
pause its timers with pause_heartbeats."""
_RERUN = """\
Forks the agent just before a record, and gives the fork the recorded inputs
from there on, with your changes. A function call that was recorded with the
same arguments gets the recorded result. Other calls that act outside are
refused, unless you give --live-tools; other calls that only read run if --tools
provides them. The agent itself does not change."""


def _sending(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="?", help="text of the message; - reads it from stdin")
    parser.add_argument(
        "--role",
        metavar="ROLE",
        default="user",
        choices=("user", "system", "event", "login", "heartbeat"),
        help="role of the sender: user, system, event (something that happened), login or heartbeat (default: user)",
    )
    parser.add_argument(
        "--id",
        metavar="UUID",
        type=argument_values.event_id,
        help="id of the input; an input that is sent again with the same id is not repeated",
    )
    parser.add_argument(
        "--speaker", metavar="WHO", default="", help="name of the user who sends the message, if there are several"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="also show thoughts and function calls")


def _cancelling(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--waiting", action="store_true", help="cancel queued turns as well")


def approval_settings(parser: argparse.ArgumentParser) -> None:
    """Add the settings of approvals."""
    group = parser.add_argument_group("approvals")
    group.add_argument(
        "--approval",
        metavar="RULE",
        action="append",
        help='rule such as "ask delete_*", "refuse pay to=*casino*" or "allow *": decision, function, patterns of '
        "arguments; the last rule that fits decides; repeatable, replaces all rules; none removes them",
    )
    group.add_argument(
        "--approval-time",
        metavar="DURATION",
        dest="approval_s",
        type=argument_values.duration,
        help="time until a call that waits is refused, such as 12h; 0s is no limit (default: 7d)",
    )


def optional_function_settings(parser: argparse.ArgumentParser) -> None:
    """Add the setting of the functions that an agent has only if they are listed."""
    group = parser.add_argument_group("optional functions")
    group.add_argument(
        "--function",
        metavar="NAME",
        action="append",
        dest="optional_functions",
        help="give the agent a function that agents do not have by themselves: message_agent, ask_agent and "
        "message_agents (write to other agents), insight_note, fact_note, fact_end, "
        "plan_make or plan_change (note memories); repeatable, replaces the list; none removes them",
    )


def label_settings(parser: argparse.ArgumentParser) -> None:
    """Add the setting of the labels of an agent."""
    parser.add_argument(
        "--label",
        metavar="LABEL",
        action="append",
        dest="labels",
        help="label by which agents are chosen together; repeatable, replaces all labels; none removes them. Without "
        "NAME: change the other settings of all agents that have these labels",
    )
    parser.set_defaults(by_label="all")


def group_settings(parser: argparse.ArgumentParser) -> None:
    """Add the settings of a group of agents."""
    group = parser.add_argument_group("groups of agents", "A group asks its members, and says what they answer.")
    group.add_argument(
        "--group",
        metavar="RULE",
        type=argument_values.group_rule,
        action=OneModel,
        dest="model",
        help="round-robin (the members speak in order), supervisor (all at once, then the manager answers) or dynamic "
        "(the manager names the next speaker)",
    )
    group.add_argument(
        "--member",
        metavar="NAME",
        action="append",
        dest="members",
        type=argument_values.words,
        help="agent that is a member; repeatable, replaces all members; none removes them",
    )
    group.add_argument(
        "--manager", metavar="NAME", help='agent that manages the group, and is no member; "" is none (default: "")'
    )
    group.add_argument(
        "--rounds",
        metavar="N",
        type=argument_values.count,
        help="times that each member speaks about a message, or in a dynamic group on average at most (default: 1)",
    )
    group.add_argument(
        "--answer-minutes",
        metavar="N",
        type=argument_values.count,
        help="minutes to wait for an answer of a member (default: 60)",
    )


def background_settings(parser: argparse.ArgumentParser) -> None:
    """Add the settings of the agent in the background."""
    group = parser.add_argument_group("background agent")
    group.add_argument(
        "--background",
        metavar="AGENT",
        help="agent that is told what was said here, to keep the memory blocks that both share; "
        '"" is none (default: "")',
    )
    group.add_argument(
        "--background-turns",
        metavar="N",
        type=argument_values.whole_number,
        help="turns after which it is told; 0 is not by turns (default: 5)",
    )
    group.add_argument(
        "--background-idle",
        metavar="MINUTES",
        type=argument_values.whole_number,
        help="minutes without a turn after which it is told; 0 is not by time (default: 10)",
    )


def function_rule_settings(parser: argparse.ArgumentParser) -> None:
    """Add the setting of rules about functions."""
    group = parser.add_argument_group("rules about functions")
    group.add_argument(
        "--rule",
        metavar="RULE",
        action="append",
        dest="function_rules",
        help='rule about the order of calls in a turn, such as "init search", "children search read,send_message", '
        '"max_count pay 1", "required note", "terminal pay", "continue note", "parent check pay" or '
        '"conditional check yes=pay *=send_message"; repeatable, replaces all rules; none removes them',
    )


def _listing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="name of the agent (default: all agents)")
    parser.add_argument("--decided", action="store_true", help="list calls that were decided or withdrawn as well")


def _approving(parser: argparse.ArgumentParser) -> None:
    _deciding(parser)
    parser.add_argument("--arguments", metavar="JSON", help="run the call with these arguments, a JSON object, instead")
    parser.add_argument("--always", action="store_true", help="let the agent call this function without asking again")


def _deciding(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("seq", metavar="SEQ", type=argument_values.count, help="number of the call in `approvals`")
    parser.add_argument("--reason", metavar="WORDS", help="words for the agent")


def _timing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="?", help="text that the agent gets when the timer fires")
    parser.add_argument(
        "--every",
        metavar="DURATION",
        type=argument_values.heartbeat_seconds,
        help="interval, such as 30m or 1h30m (default: fire once)",
    )
    parser.add_argument(
        "--daily", metavar="HH:MM", type=argument_values.time_of_day, help="every day at this time of the agent's zone"
    )
    parser.add_argument(
        "--cron",
        metavar="SCHEDULE",
        type=argument_values.schedule,
        help='times as in a crontab, in the agent\'s zone: "0 7 * * 1-5" is 07:00 from Monday to Friday',
    )
    first = parser.add_mutually_exclusive_group()
    first.add_argument(
        "--at",
        metavar="TIME",
        type=argument_values.time_of_zone,
        help="first time, an ISO time; without an offset in the agent's zone (default: one interval from now)",
    )
    first.add_argument(
        "--after", metavar="DURATION", type=argument_values.duration, help="delay until the first time, such as 10m"
    )
    parser.add_argument(
        "--timer",
        metavar="TIMER",
        type=argument_values.words,
        help="name of the timer; replaces a timer of the same name",
    )
    parser.add_argument(
        "--cancel", metavar="TIMER", type=argument_values.words, help="cancel the timer of this name instead"
    )


def _rerunning(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from",
        dest="first",
        metavar="SEQ|TIME",
        help="rerun from this record, or from the first record at or after a time; inside a turn: from its start",
    )
    new_name(parser)
    parser.add_argument("--turns", metavar="N", type=argument_values.count, help="rerun at most N turns (default: all)")
    parser.add_argument(
        "--recorded",
        action="store_true",
        help="replay recorded replies instead of calling a model; stop at the first request that differs",
    )
    parser.add_argument("--live-tools", action="store_true", help="allow calls that were not recorded to act outside")
    parser.add_argument("--report", action="store_true", help="run nothing; compare NAME with its existing fork NEW")
    group = parser.add_argument_group("changes in the fork")
    model(group, "model of the fork (default: the recorded model)")
    base_url(group)
    window(group)
    system(group)
    blocks(group, "replace the text of a memory block, or add a block; repeatable")
    parser.set_defaults(runtime=None, persona=None, human=None, zone=None, preset=None, verify_first=None)


COMMANDS = (
    CommandSpec("chat", "talk.chat:chat", "talk to an agent; creates it if it does not exist", "everlog chat sam",
            (name_or_sam, opening)),
    CommandSpec("send", "talk.send:send", "send one message to an agent, and print its answer",
            'everlog send sam "Hi, my name is Chad and I sail"', (name, label_of_each, _sending, json, opening),
            usage="NAME TEXT"),
    CommandSpec("cancel", "talk.cancel_command:cancel", "cancel the current turn of an agent", "everlog cancel sam",
            (name, label_of_each, _cancelling, runtime, json), _CANCELLING),
    CommandSpec("approvals", "talk.approval_commands:approvals", "list the calls that wait for a person's approval",
            "everlog approvals", (_listing, json), _DECIDING),
    CommandSpec("approve", "talk.approval_commands:approve", "approve a call that waits: it runs, the agent answers",
            "everlog approve sam 42", (name, _approving, tools, grant_options, json, runtime), _DECIDING),
    CommandSpec("refuse", "talk.approval_commands:refuse", "refuse a call that waits: it never runs",
            'everlog refuse sam 42 --reason "Too expensive."', (name, _deciding, tools, grant_options, json, runtime),
            _DECIDING),
    CommandSpec("timer", "talk.timer_commands:timer", "wake an agent at a time, or at intervals",
            'everlog timer sam "Does it rain?" --every 30m', (name, label_of_each, _timing, json, runtime), _TIMERS),
    CommandSpec("rerun", "talk.rerun_command:rerun", "what if: rerun recorded inputs with changes, and compare",
            "everlog rerun sam --from 40 --model gpt-4o --new-name sam-otherwise",
            (name, _rerunning, tools, grant_options, json), _RERUN),
)  # fmt: skip
"""In the order of the help."""
