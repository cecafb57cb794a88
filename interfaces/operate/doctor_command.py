"""`everlog doctor`: check the installation, the machine, the store, the models and the cluster. Changes nothing.

Called by `cli.command_run`. A finding names its cure; the exit code is 1 if a finding is `fail`.
"""

import os
from argparse import Namespace
from collections.abc import Iterator

from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import root_of
from everlog.interfaces.defaults.default_files import applied
from everlog.interfaces.operate.findings import Finding, print_findings
from everlog.interfaces.operate.machine_checks import check_defaults, check_machine, check_zone
from everlog.interfaces.operate.service_checks import check_cluster, check_models
from everlog.interfaces.operate.store_checks import check_store
from everlog.interfaces.output import json_shapes


def doctor(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `doctor`."""
    findings = list(_findings(args, world))
    failed = any(one.level == "fail" for one in findings)
    if args.json:
        print(json_shapes.line({"healthy": not failed, "findings": [one._asdict() for one in findings]}))
        return int(failed)
    print_findings(findings)
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
