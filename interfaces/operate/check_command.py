"""`everlog store check`: check all of a store, in a folder or a bucket. Called by `cli.command_run`. Writes nothing."""

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path

from everlog.actors.a2a.remote_agents import remote_agents
from everlog.actors.mcp.accepted_tools import accepted_of
from everlog.actors.mcp.servers_toml import servers_of
from everlog.actors.models.model_catalogue import catalogue_of
from everlog.events import EverlogError, UsageError
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import store_of
from everlog.interfaces.common.plural import plural
from everlog.interfaces.operate.findings import Finding, print_findings
from everlog.interfaces.output import json_shapes
from everlog.interfaces.show.log_commands import LogFindings, check_logs
from everlog.store import FileStore, exposure, url_of
from everlog.store.check.check_side_files import check_side_files, foreign_names, side_files_on
from everlog.store.object.open_bucket import PROBE

SHOWN_MAX = 3
"""Most foreign names that are shown."""
READERS: tuple[Callable[[Path], object], ...] = (catalogue_of, servers_of, accepted_of, remote_agents)
"""Readers of the side files in which a value may be wrong although the file is well formed."""


def check(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `store check`."""
    store = store_of(args, world)
    args.all, args.deep, args.name = True, True, None
    logs = check_logs(args, store)
    findings = [*_logs(logs), *_beside(store), *_others(store)]
    if url := url_of(store.root):
        findings += _bucket(url)
    elif known := exposure(store.root):
        findings.append(Finding("permissions", "warn", known))
    failed = any(one.level == "fail" for one in findings)
    if args.json:
        shown = [one._asdict() for one in findings]
        print(json_shapes.line({"healthy": not failed, "logs": logs.logs, "findings": shown}))
    else:
        print_findings(findings)
    sys.stdout.flush()
    return int(failed)


def _logs(found: LogFindings) -> Iterator[Finding]:
    damaged = [log for log in found.logs if log["errors"]]
    for wrong in found.contradictions:
        yield Finding("register", "fail", wrong)
    if damaged:
        yield Finding("logs", "fail", f"damage in {len(damaged)} of {plural(len(found.logs), 'log')}, see above")
    elif not found.contradictions:
        records = sum(log["records"] for log in found.logs)
        yield Finding("logs", "ok", f"{plural(len(found.logs), 'log')} with {plural(records, 'record')}, no damage")


def _beside(store: FileStore) -> Iterator[Finding]:
    """Yield the findings about the files beside the logs."""
    count, wrong = check_side_files(side_files_on(store.disk, store.root), store.root)
    for read in READERS:
        try:
            read(store.root)
        except EverlogError as error:
            wrong.append(str(error))
    for said in dict.fromkeys(wrong):
        yield Finding("side files", "fail", said)
    if not wrong:
        yield Finding("side files", "ok", f"{plural(count, 'file')} beside the logs, all whole")


def _others(store: FileStore) -> Iterator[Finding]:
    """Yield the findings about what is not everlog's."""
    found = foreign_names(store.disk, store.root)
    foreign = [name for name in found if not name.startswith(PROBE)]
    if left := [name for name in found if name.startswith(PROBE)]:
        told = f"{plural(len(left), 'object')} of trials of the bucket that were interrupted: {', '.join(left)}"
        yield Finding("others", "warn", told, "Delete them, or leave them: the next erasure deletes them.")
    if not foreign:
        yield Finding("others", "ok", "nothing here that is not everlog's")
        return
    some = ", ".join(foreign[:SHOWN_MAX]) + (f" and {len(foreign) - SHOWN_MAX:,} more" if foreign[SHOWN_MAX:] else "")
    yield Finding(
        "others", "fail" if url_of(store.root) else "warn",
        f"{plural(len(foreign), 'name')} here that everlog did not write: {some}",
        "Move them to a prefix of their own." if url_of(store.root) else "",
    )  # fmt: skip


def _bucket(url: str) -> Iterator[Finding]:
    """Yield the findings about the rules of the bucket and about old versions."""
    from everlog.store.object.bucket_rules import client_of, rules_of

    try:
        rules = rules_of(client_of(url), url)
    except UsageError as error:
        yield Finding("bucket", "warn", f"its rules and versions were not looked at: {error}")
        return
    for said in rules.deleting:
        yield Finding("lifecycle", "fail", said, "Remove the rule, or give it a prefix that is not the store's.")
    for said in rules.untold:
        yield Finding("bucket", "warn", f"the service did not tell its {said}", "Look at them where you manage it.")
    if rules.versioning == "Enabled" or rules.old_versions:
        kept = f"{plural(rules.old_versions, 'old version')} under the prefix, which no erasure reaches"
        state = rules.versioning.lower() or "off"
        yield Finding("versions", "fail", f"versioning is {state}: {kept}",
                      "Switch versioning off, and delete old versions and delete markers.")  # fmt: skip
    if not (rules.deleting or rules.untold or rules.versioning == "Enabled" or rules.old_versions):
        yield Finding("bucket", "ok", "no rule deletes objects of the store, and no old versions are kept")
