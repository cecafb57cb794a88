"""`everlog preset`: list, show, add and remove personas and humans for new agents. Called by `cli.command_run`."""

from argparse import Namespace

from everlog.actors.prompt import presets
from everlog.interfaces.common import own_presets
from everlog.interfaces.common.error_output import escape_line, sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.input_text import required_text
from everlog.interfaces.common.open_store import root_of
from everlog.interfaces.output import json_shapes


def list_(args: Namespace, _: CommandEnvironment) -> int:
    """Run the command `preset list`."""
    root = root_of(args)
    rows = [
        {"kind": kind, "preset": name, "shipped": shipped, "characters": len(own_presets.text(root, kind, name))}
        for kind in own_presets.KINDS
        for names, shipped in ((presets.names(kind), True), (own_presets.names(root, kind), False))
        for name in names
    ]
    if args.json:
        print(json_shapes.line(rows))
        return 0
    for row in rows:
        origin = "shipped" if row["shipped"] else "own"
        print(escape_line(f"{row['kind']:<8} {row['preset']:<20} {origin:<8} {row['characters']:,} characters"))
    return 0


def show(args: Namespace, _: CommandEnvironment) -> int:
    """Run the command `preset show`."""
    value = own_presets.text(root_of(args), args.kind, args.preset)
    print(json_shapes.line({"kind": args.kind, "preset": args.preset, "text": value}) if args.json else sanitize(value))
    return 0


def add(args: Namespace, _: CommandEnvironment) -> int:
    """Run the command `preset add`."""
    own_presets.add(root_of(args), args.kind, args.preset, required_text(args))
    return _done(args, "Added", f"--{args.kind} {args.preset} gives it to a new agent")


def remove(args: Namespace, _: CommandEnvironment) -> int:
    """Run the command `preset remove`."""
    own_presets.remove(root_of(args), args.kind, args.preset)
    return _done(args, "Removed", "agents that have it keep their copy")


def _done(args: Namespace, did: str, note: str) -> int:
    shape = {"kind": args.kind, "preset": args.preset}
    print(json_shapes.line(shape) if args.json else escape_line(f"{did} the {args.kind} {args.preset}; {note}."))
    return 0
