"""`everlog a2a`: add, list, test and remove the agents of other programs that agents may ask.

Called by `cli.command_run`. Only commands that read a card connect to its server.
"""

import asyncio
import os
from argparse import Namespace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import msgspec

from everlog.actors.a2a import remote_agents
from everlog.actors.a2a.remote_agents import DESCRIPTION_CHARS_MAX, RemoteAgent
from everlog.actors.a2a.remote_functions import NEEDED
from everlog.events import BadInput, UsageError
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import root_of
from everlog.interfaces.output import json_shapes

if TYPE_CHECKING:
    from everlog.actors.a2a.remote_reply import ReadCard


def add(args: Namespace, _: CommandEnvironment) -> int:
    """Run the command `a2a add`: read the card, and write the agent into the file."""
    root, name = root_of(args), args.remote_name
    entry = _entry_of(args)
    remote_agents.check_new(root, name, entry)
    card = _card(name, entry)
    if not entry.description:
        entry = msgspec.structs.replace(entry, description=_about(card))
    remote_agents.add_agent(root, name, entry)
    if args.json:
        print(json_shapes.line(_row(name, entry, card)))
        return 0
    _print_card(card)
    print(sanitize(f"Models will read: {entry.description}"))
    print(f"Added {name}. Let an agent ask it: everlog chat NAME --a2a {name}")
    return 0


def list_all(args: Namespace, _: CommandEnvironment) -> int:
    """Run the command `a2a list`. No agent is asked."""
    agents = remote_agents.remote_agents(root_of(args))
    if args.json:
        print(json_shapes.line([_row(name, entry) for name, entry in agents.items()]))
        return 0
    if not agents:
        print("There are no remote agents. `everlog a2a add NAME URL` adds one.")
    for name, entry in agents.items():
        waits = "waits for a person" if entry.approval else "is asked at once"
        print(sanitize(f"{name}  ask_{name}  {waits}  {entry.card}"))
    return 0


def test(args: Namespace, _: CommandEnvironment) -> int:
    """Run the command `a2a test`: read the card of a remote agent, and show it."""
    entry = remote_agents.remote_agent(root_of(args), args.remote_name)
    card = _card(args.remote_name, entry)
    if args.json:
        print(json_shapes.line(_row(args.remote_name, entry, card)))
    else:
        _print_card(card)
    return 0


def remove(args: Namespace, _: CommandEnvironment) -> int:
    """Run the command `a2a remove`."""
    remote_agents.remove_agent(root_of(args), args.remote_name)
    removed = json_shapes.line({"remote": args.remote_name})
    print(removed if args.json else f"Removed {args.remote_name}.")
    return 0


def _entry_of(args: Namespace) -> RemoteAgent:
    """Return the entry that the arguments describe. Raises BadInput for a header without a variable."""
    headers = dict(header.partition("=")[::2] for header in args.header)
    if not all(headers.values()):
        raise BadInput("--header is NAME=VARIABLE: the variable holds the value, so that no file does.")
    return RemoteAgent(
        card=args.url, description=args.description or "", token=args.token or "", headers=headers,
        approval=not args.without_approval, repeats=args.repeats,
    )  # fmt: skip


def _card(name: str, entry: RemoteAgent) -> "ReadCard":
    """Return the card of a remote agent. Raises A2aError, UsageError without the package."""
    if find_spec("a2a") is None:
        raise UsageError(NEEDED)
    from everlog.actors.a2a.sdk_calls import read_card

    return asyncio.run(read_card(name, entry, os.environ))


def _about(card: "ReadCard") -> str:
    """Return what a card says of its agent, as one line for models."""
    words = " ".join(f"{card.name}: {card.description} {' '.join(card.skills)}".split())
    return words if len(words) <= DESCRIPTION_CHARS_MAX else f"{words[: DESCRIPTION_CHARS_MAX - 1]}…"


def _print_card(card: "ReadCard") -> None:
    print(sanitize(f"{card.name}, at {card.url} by {card.protocol}"))
    for line in (card.description, *card.skills):
        print(sanitize(f"  {' '.join(line.split())}"))


def _row(name: str, entry: RemoteAgent, card: "ReadCard | None" = None) -> dict[str, Any]:
    row = {"remote": name, "function": f"ask_{name}", **msgspec.to_builtins(entry)}
    return row if card is None else {**row, "found": msgspec.to_builtins(card)}
