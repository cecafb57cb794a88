"""`everlog show`: the conversation with an agent as a transcript, to read or to share. Writes nothing.

Called by `cli.command_run`.
"""

from argparse import Namespace

from everlog.interfaces.common.bootstrap import opened_view
from everlog.interfaces.common.error_output import complain
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.output import json_shapes
from everlog.interfaces.show import transcript


def show(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog show` and return its exit code."""
    if args.json and args.markdown:
        args.fail("--json and --markdown exclude each other")
    with opened_view(args, world) as view:
        zone = view.searcher().zone
        records = view.reader.read(view.agent_id, 1, view.seq)
        entries = transcript.transcript(records, first=args.first, last=args.last, calls=args.calls)
        if args.first > view.seq:
            complain(f"--from {args.first} is beyond the last record: {view.agent_id!r} has records 1 to {view.seq}.")
        elif args.last is not None and args.first > args.last:
            complain(f"--from {args.first} comes after --to {args.last}, so there is no message to show.")
    if args.json:
        print(json_shapes.line(transcript.shape(view.agent_id, view.seq, zone, entries)))
        return 0
    form = transcript.markdown if args.markdown else transcript.plain
    print(form(view.agent_id, entries, zone))
    return 0
