"""`everlog keys`: create, list and revoke the keys of a server. A key is shown once.

Called by `cli.command_run`.
"""

from argparse import Namespace

from everlog.actors.ports.real_clock import secret
from everlog.events.times import MICROSECONDS, iso
from everlog.interfaces.common.error_output import escape_line
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import root_of, store_of
from everlog.interfaces.common.time_text import clock
from everlog.interfaces.http.core.keys import PREFIX, KeyEntry, KeyRing
from everlog.interfaces.output import json_shapes


def create(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog keys create`: print the key and its id."""
    store_of(args, world, create=True)
    now = world.clock.now()
    expires_at = None if args.expires is None else now + args.expires * MICROSECONDS
    key = f"{PREFIX}{secret()}"
    entry = KeyRing(root_of(args)).create(
        args.label, args.role, key=key, key_id=world.ids.new(now), now=now, tenant=args.tenant, expires_at=expires_at
    )
    if args.json:
        print(json_shapes.line({"key": key, **shape(entry)}))
        return 0
    whose = f"tenant {entry.tenant}" if entry.tenant else "all agents"
    print(f"{key}\n\nThis is the only time that the key is shown. Id {entry.id}, role {entry.role}, {whose}.")
    print('Send it as the header "Authorization: Bearer KEY".')
    return 0


def list_all(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog keys list`."""
    entries, now = KeyRing(store_of(args, world).root).all(), world.clock.now()
    if args.json:
        print(json_shapes.line([shape(entry) for entry in entries]))
        return 0
    for entry in entries:
        state = "valid" if entry.is_valid(now) else "revoked" if entry.revoked_at is not None else "expired"
        whose = f"tenant {entry.tenant}" if entry.tenant else "all agents"
        print(escape_line(f"{entry.id}  {state:7}  {entry.role:5}  {clock(entry.created_at)}  {whose}  {entry.name}"))
    if not entries:
        print("There are no keys: a server on this machine answers without one. `everlog keys create NAME` makes one.")
    return 0


def revoke(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog keys revoke`."""
    entry = KeyRing(store_of(args, world).root).revoke(args.id, world.clock.now())
    print(json_shapes.line(shape(entry)) if args.json else escape_line(f"Revoked {entry.id} ({entry.name})."))
    return 0


def shape(entry: KeyEntry) -> json_shapes.JsonObject:
    """Return a key for programs: everything but its digest."""
    return {
        "id": entry.id,
        "name": entry.name,
        "role": entry.role,
        "tenant": entry.tenant,
        "created_at": iso(entry.created_at),
        "expires_at": None if entry.expires_at is None else iso(entry.expires_at),
        "revoked_at": None if entry.revoked_at is None else iso(entry.revoked_at),
    }
