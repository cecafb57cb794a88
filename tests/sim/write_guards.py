"""The guards of writing: durability and ownership. Each is registered in `broken_guards.BREAKS`."""

from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

from everlog.store.log import file_log, partition_recovery
from everlog.store.partition import epoch, manifest, open_segment
from everlog.store.stores import file_store
from tests.sim.broken_guards import (
    Changed,
    guard,
    instead,
    nothing,
    overwriting,
    publishing,
    together,
    without_sync,
    without_sync_dir,
)

# Durability


@guard("sync", "what is acknowledged is on the platter")
def _() -> AbstractContextManager[object]:
    return patch.object(open_segment.OpenSegment, "sync", nothing)


@guard("folder of a new file", "a file is durable in its folder before a manifest names it")
def _() -> AbstractContextManager[object]:
    begin = open_segment.OpenSegment.begin

    def broken(partition: Any, first: int, number: int) -> Any:
        return begin(partition._replace(disk=without_sync_dir(partition.disk)), first, number)

    return patch.object(open_segment.OpenSegment, "begin", broken)


@guard("sync of a manifest", "a manifest is whole before it has its name")
def _() -> AbstractContextManager[object]:
    return publishing(without_sync, manifest)


@guard("folder of a manifest", "a manifest is not built upon before it is durable")
def _() -> AbstractContextManager[object]:
    return publishing(without_sync_dir, manifest)


@guard("sync of an epoch", "an epoch file is whole before it has its name")
def _() -> AbstractContextManager[object]:
    return publishing(without_sync, epoch)


@guard("folder of an epoch", "an epoch does not come again after a power loss")
def _() -> AbstractContextManager[object]:
    return publishing(without_sync_dir, epoch)


@guard("folder of the store's file", "everlog.json and registrations survive what is built upon them")
def _() -> AbstractContextManager[object]:
    create = file_store.FileStore.create

    def create_broken(*args: Any, disk: Any, **kwargs: Any) -> Any:
        store = create(*args, disk=without_sync_dir(disk), **kwargs)
        store._opener.disk = disk  # the logs are durable; only the register uses the broken disk
        return store

    return patch.object(file_store.FileStore, "create", create_broken)


@guard("poison", "after a failed write or sync nothing is written, and so acknowledged, behind it")
def _() -> AbstractContextManager[object]:
    return patch.object(file_log.FileLog, "_poison", property(lambda _: "", nothing), create=True)


@guard("settle", "what an owner finds, it makes durable before it builds upon it")
def _() -> AbstractContextManager[object]:
    return patch.object(open_segment.OpenSegment, "settle", nothing)


@guard("settle writes again", "after a failed sync the system takes the tail for clean and would not write it")
def _() -> AbstractContextManager[object]:
    return patch.object(open_segment.OpenSegment, "settle", lambda file, _: file.sync())


@guard("cut bytes are kept", "the tail is durable beside the file before it is cut off")
def _() -> AbstractContextManager[object]:
    def make(keep: Any) -> Any:
        return lambda where, *rest: keep(where._replace(disk=without_sync(where.disk)), *rest)

    return instead(partition_recovery, "_save_tail", make)


@guard("cut names are kept", "the kept tail has its name durably before the tail is cut off")
def _() -> AbstractContextManager[object]:
    def make(keep: Any) -> Any:
        return lambda where, *rest: keep(where._replace(disk=without_sync_dir(where.disk)), *rest)

    return instead(partition_recovery, "_save_tail", make)


# One writer


@guard("look for a higher epoch", "a writer that was fenced is not acknowledged")
def _() -> AbstractContextManager[object]:
    return patch.object(epoch.Ownership, "is_latest", lambda _: True)


@guard("epoch before tail", "the epoch is published before the tail is read, so that nothing is acknowledged behind it")
def _() -> AbstractContextManager[object]:
    def make(take: Any) -> Any:
        def broken(where: Any, *args: Any, **kwargs: Any) -> Any:
            seen = {}
            with suppress(OSError):
                seen = {name: where.disk.read(where.path / name) for name in _names(where) if name.endswith(".open")}
            ownership = take(where, *args, **kwargs)
            ownership.seen = seen
            return ownership

        return broken

    def late(recover: Any) -> Any:
        def broken(where: Any, ownership: Any, now: int) -> Any:
            def read(path: Path, offset: int = 0, length: int | None = None) -> bytes:
                end = None if length is None else offset + length
                held: bytes = where.disk.read(path, offset, length)
                return ownership.seen[path.name][offset:end] if path.name in ownership.seen else held

            recovered = recover(where._replace(disk=Changed(where.disk, read=read)), ownership, now)
            recovered.file._partition = where
            return recovered

        return broken

    return together([instead(file_log, "take", make), instead(file_log, "recover", late)])


def _names(where: Any) -> list[str]:
    return list(where.disk.names(where.path)) if where.disk.exists(where.path) else []


@guard("an epoch is one's own", "of two who take the same epoch one has it")
def _() -> AbstractContextManager[object]:
    return publishing(overwriting, epoch)


@guard("a manifest is one's own", "of two who publish the same manifest one has it")
def _() -> AbstractContextManager[object]:
    return publishing(overwriting, manifest)


@guard("goes on", "a file that somebody may still write to is not written to")
def _() -> AbstractContextManager[object]:
    return instead(epoch, "Ownership", lambda kind: lambda where, number, file, _: kind(where, number, file, True))


@guard("goes on after all of them", "not only the owner before is gone, but all whose epochs are still there")
def _() -> AbstractContextManager[object]:
    def make(is_gone: Any) -> Any:
        return lambda where, number, owner: number < max(where.numbers("epoch-")) or is_gone(where, number, owner)

    return instead(epoch, "_is_gone", make)


@guard("a number of long ago", "a manifest number that is free because it was removed is nobody's to publish")
def _() -> AbstractContextManager[object]:
    def make(succeed: Any) -> Any:
        def broken(where: Any, before: Any, *rest: Any) -> Any:
            def numbers(prefix: str) -> list[int]:
                return [number for number in where.numbers(prefix) if number <= before.number + 1]

            return succeed(Changed(where, numbers=numbers), before, *rest)

        return broken

    return together([instead(module, "succeed", make) for module in (file_log, partition_recovery)])


@guard("the loser syncs", "who finds a name taken makes it durable before anything is built upon it")
def _() -> AbstractContextManager[object]:
    def change(disk: Any) -> Any:
        lost = Changed(disk)

        def link(source: Path, target: Path) -> None:
            try:
                disk.link(source, target)
            except FileExistsError:
                lost._changes["sync_dir"] = nothing
                raise

        lost._changes["link"] = link
        return lost

    return publishing(change, file_store)


@guard("busy", "nobody is fenced who lives, unless that was asked for")
def _() -> AbstractContextManager[object]:
    return instead(file_log, "take", lambda take: lambda *args, **_: take(*args, take_over=True))


@guard("a newer manifest fences", "an owner that was stopped while it opened does not publish over a newer one")
def _() -> AbstractContextManager[object]:
    return instead(partition_recovery, "load", lambda load: lambda where: _Old(load(where)))


class _Old(Changed):
    """A manifest that does not contain its epoch."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner, epoch=0)


@guard("sweep", "what a newer owner has begun is not swept by an older one")
def _() -> AbstractContextManager[object]:
    return instead(partition_recovery, "strays", lambda strays: lambda where, live, _: strays(where, live, 10**6))
