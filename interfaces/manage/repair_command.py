"""`everlog log repair-register`: make the register again from the logs.

Called by `cli.command_run`. Lists every change before it asks, so that no name is given up unseen.
"""

import sys
from argparse import Namespace

import msgspec

from everlog.interfaces.common.error_output import complain, sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import store_of
from everlog.interfaces.common.plural import plural
from everlog.interfaces.output import json_shapes
from everlog.store.check.repair_plan import RepairPlan
from everlog.store.check.repair_register import look_at_register, repair_register


def repair(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog log repair-register` and return its exit code: 1 if something could not be repaired."""
    store = store_of(args, world)
    plan = look_at_register(store)
    if not args.json:
        _list(plan)
    done = bool(plan.changes) and (args.yes or _confirm(args, world, plan))
    if done:
        repair_register(store, plan)
    if args.json:
        changes = [{key: msgspec.to_builtins(getattr(change, key)) for key in _SHOWN} for change in plan.changes]
        print(json_shapes.line({"repaired": done, "changes": changes, "unrepairable": plan.unrepairable}))
    elif plan.changes:
        print(f"{plural(len(plan.changes), 'change')} made." if done else "Nothing was changed.")
    elif not plan.unrepairable:
        print("The register agrees with the logs.")
    for why in plan.unrepairable:
        complain(sanitize(why))
    return int(bool(plan.unrepairable) or (bool(plan.changes) and not done))


_SHOWN = ("stream", "kind", "text")


def _list(plan: RepairPlan) -> None:
    for change in plan.changes:
        print(sanitize(change.text))
        for path, ending in change.aside:
            print(sanitize(f"  {path} is kept as {path.name[:8]}...{ending}"))


def _confirm(args: Namespace, world: CommandEnvironment, plan: RepairPlan) -> bool:
    if not sys.stdin.isatty():
        args.fail("stdin is not a terminal: give --yes to confirm")
    gone = [change for change in plan.changes if change.kind == "given_up"]
    names = f" {plural(len(gone), 'name')} without a record will be free again." if gone else ""
    answer = world.ask(f"Make {plural(len(plan.changes), 'change')} of the register?{names} [y/N] ")
    return answer.strip().lower() in ("y", "yes")
