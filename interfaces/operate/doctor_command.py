"""`everlog doctor`: check the installation, the machine, the store, the models and the cluster. Changes nothing.

Called by `cli.command_run`. A finding names its cure; the exit code is 1 if a finding is `fail`.
"""

import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping

from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import root_of
from everlog.interfaces.common.plural import plural
from everlog.interfaces.defaults.default_files import applied
from everlog.interfaces.operate.findings import Finding, FindingLevel
from everlog.interfaces.operate.machine_checks import check_defaults, check_machine, check_zone
from everlog.interfaces.operate.service_checks import check_cluster, check_models
from everlog.interfaces.operate.store_checks import check_store
from everlog.interfaces.output import json_shapes

COLOURS: Mapping[FindingLevel, str] = {"ok": "32", "warn": "33", "fail": "31"}


def doctor(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `doctor`."""
    findings = list(_findings(args, world))
    failed = any(one.level == "fail" for one in findings)
    if args.json:
        print(json_shapes.line({"healthy": not failed, "findings": [one._asdict() for one in findings]}))
        return int(failed)
    colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    for one in findings:
        level = f"{one.level:4}"
        print(f"\x1b[{COLOURS[one.level]}m{level}\x1b[0m" if colours else level, end="  ")
        print(sanitize(f"{one.check}: {one.said}"))
        if one.cure:
            print(sanitize(f"      -> {one.cure}"))
    counts = {level: sum(one.level == level for one in findings) for level in ("warn", "fail")}
    print(f"{plural(counts['fail'], 'failure')}, {plural(counts['warn'], 'warning')}.")
    return int(failed)


def _findings(args: Namespace, world: CommandEnvironment) -> Iterator[Finding]:
    yield from check_machine(world.clock.now(), os.environ)
    finding, defaults = check_defaults(args.store, os.environ)
    yield finding
    if defaults is None:  # which store and which endpoint are meant is not known
        return
    yield check_zone(defaults)
    with applied(args):
        root = root_of(args)
        yield from check_store(root, world)
        yield from check_models(root, os.environ, online=args.online)
        yield from check_cluster(root, os.environ)
