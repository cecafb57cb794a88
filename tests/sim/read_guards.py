"""The guards of reading, admission and sealing. Each is registered in `broken_guards.BREAKS`."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from everlog.events import CorruptLog
from everlog.store.base import disk as real
from everlog.store.log import file_log, partition_reader, partition_recovery
from everlog.store.partition import append_rules, dedup_index, frame, frame_index, segment
from everlog.store.sealed import parquet_file, seal_pass, sealed_reader
from tests.sim.broken_guards import Changed, guard, instead, nothing, together, without_sync, without_sync_dir
from tests.sim.checkers import Violation

# Reading frames


@guard("header checksum", "no field of a header is believed that may be torn")
def _() -> AbstractContextManager[object]:
    def unpack(_salt: int, offset: int, data: bytes, at: int | None = None) -> frame.FrameHeader | None:
        at = offset if at is None else at
        if data[at : at + 4] != frame.MAGIC or at + frame.HEADER_BYTES > len(data):
            return None
        (crc,) = frame._CRC.unpack_from(data, at + frame._FIELDS.size)
        return frame.FrameHeader._make((*frame._FIELDS.unpack_from(data, at)[1:], crc))

    return together([patch.object(module, "unpack", unpack) for module in (segment, frame_index)])


@guard("body checksum", "a frame whose body is torn is not there: a commit is whole or not at all")
def _() -> AbstractContextManager[object]:
    def believed(header: frame.FrameHeader, body: Any) -> bool:
        if body.size == header.body_bytes and not frame.body_is_right(header, body):
            raise Violation("a body that is torn or rotten was believed")  # to decode it may end the process
        return bool(body.size == header.body_bytes)

    return together([patch.object(module, "body_is_right", believed) for module in (segment, frame_index)])


def _following(**fields: int) -> AbstractContextManager[object]:
    """While open, let `Scan` accept any values of these fields in the next frame."""

    def make(follows: Any) -> Any:
        names = {"next_commit": "first_commit", "epoch": "epoch", "previous": "previous"}
        return lambda scan, header: follows(
            Changed(scan, **{name: getattr(header, names[name]) for name in fields}), header
        )

    return instead(segment.FrameScan, "_follows", make)


@guard("previous frame", "a frame follows the very frame before it")
def _() -> AbstractContextManager[object]:
    return _following(previous=0)


@guard("commit number", "commits follow each other")
def _() -> AbstractContextManager[object]:
    return _following(next_commit=0)


@guard("epoch in a file", "no older owner's frame follows a newer one's")
def _() -> AbstractContextManager[object]:
    return _following(epoch=0)


@guard("damage is no tail", "a bad place with whole frames behind it is damage, and is never cut")
def _() -> AbstractContextManager[object]:
    return patch.object(segment.FrameScan, "_whole_frame_beyond", nothing)


@guard("length of a closed file", "what a fenced writer wrote behind the end of a closed file does not exist")
def _() -> AbstractContextManager[object]:
    def all_frames(where: Any, entry: Any, _: Any) -> Iterator[segment.Frame]:
        data = where.disk.read(where.path / entry.name)
        yield from segment.FrameScan(data, where.salt(entry.name), entry.first_commit, entry.name)

    return together(
        [
            patch.object(module, "closed_frames", all_frames)
            for module in (partition_reader, partition_recovery, seal_pass)
        ]
    )


@guard("own reads are durable", "a writer does not show what it was not acknowledged")
def _() -> AbstractContextManager[object]:
    return instead(file_log, "PartitionReader", lambda kind: lambda where, _: kind(where))


@guard("look again", "a reader whose manifest is old by now reads the newer one")
def _() -> AbstractContextManager[object]:
    return patch.object(partition_reader.PartitionReader, "_is_old", lambda *_: False)


# Admission


@guard("expected seq", "an append is for one place only")
def _() -> AbstractContextManager[object]:
    def make(admit: Any) -> Any:
        def broken(group: Any, append: Any) -> Any:
            head = group._heads.get(append.agent_id) or group._ledger.head(append.agent_id)
            return admit(group, Changed(append, expected_seq=head.seq))

        return broken

    return instead(append_rules.AppendGroup, "admit", make)


@guard("ids", "the same events come once")
def _() -> AbstractContextManager[object]:
    return patch.object(dedup_index.DedupIndex, "find", nothing)


@guard("ids across openings", "the next owner knows the ids of the one before")
def _() -> AbstractContextManager[object]:
    def replay(ledger: Any, records: Any, where: str) -> None:
        append_rules.follow(ledger.heads, records, where)

    return patch.object(append_rules.StreamHeads, "replay", replay)


@guard("ids of sealed files", "the ids of records that were sealed are known")
def _() -> AbstractContextManager[object]:
    return together([patch.object(module, "ids_of", lambda *_: {}) for module in (file_log, partition_recovery)])


@guard("ids that are too old", "an id that may have been forgotten is refused")
def _() -> AbstractContextManager[object]:
    def make(admit: Any) -> Any:
        return lambda group, append: admit(group, Changed(append, is_late=False, oldest=2**63))

    return instead(append_rules.AppendGroup, "admit", make)


# Sealing


@guard("sync of a sealed file", "a sealed file is durable before a manifest names it in place of frames")
def _() -> AbstractContextManager[object]:
    def make(save: Any) -> Any:
        return lambda where, *rest: save(where._replace(disk=without_sync(where.disk)), *rest)

    return instead(seal_pass, "save", make)


@guard("folder of a sealed file", "a sealed file has its name durably before a manifest names it")
def _() -> AbstractContextManager[object]:
    def make(run: Any) -> Any:
        def broken(step: Any) -> Any:
            step._where = step._where._replace(disk=without_sync_dir(step._where.disk))
            return run(step)

        return broken

    return instead(seal_pass.SealPass, "run", make)


@guard("old files last", "what was sealed is removed only after a manifest names the new file")
def _() -> AbstractContextManager[object]:
    def make(run: Any) -> Any:
        def broken(step: Any) -> Any:
            change = run(step)
            for entry in change.before if change else ():
                real.remove_if_there(step._where.disk, step._where.path / entry.name)
            return change

        return broken

    return instead(seal_pass.SealPass, "run", make)


@guard("sealed row group checksum", "Parquet alone tells no flipped bit")
def _() -> AbstractContextManager[object]:
    def make(fetch: Any) -> Any:
        def believed(*args: Any) -> None:
            try:
                fetch(*args)
            except CorruptLog as error:
                raise Violation("a part that is rotten was believed") from error  # to decode it may end the process

        return believed

    return together([instead(parquet_file, name, make) for name in ("_fetch", "_fetch_footer")])


@guard("erasure", "sealing makes tombstones of what is to be erased")
def _() -> AbstractContextManager[object]:
    return patch.object(seal_pass, "erase_records", lambda table, _: (table, 0))


@guard("erasure in older files", "sealed files from before hold what is erased, too")
def _() -> AbstractContextManager[object]:
    return patch.object(seal_pass.SealPass, "_others", lambda _: [])


@guard("erasure is finished", "the next owner carries out what the one before asked for and did not come to do")
def _() -> AbstractContextManager[object]:
    return patch.object(file_log.FileLog, "_finish_erasures", nothing)


@guard("cut bytes are erased", "a tail that was cut and kept may say what was erased")
def _() -> AbstractContextManager[object]:
    return patch.object(file_log, "remove_cut", nothing)


@guard("order of sealed records", "records that were sorted by agent come back in the order of their commits")
def _() -> AbstractContextManager[object]:
    return patch.object(sealed_reader, "COMMIT_ORDER", [("agent_id", "ascending"), ("seq", "ascending")])
