"""Export and restore agents as streams, import past conversations, write data sets, and compare two moments."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
from starlette.responses import Response

from everlog.actors.agent.agent_view import AgentView
from everlog.actors.agent.conversation_import import conversation
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.models.model_types import is_gguf
from everlog.actors.reports.dataset import JsonLine, TimeSpan, models_saw, people_saw
from everlog.events import (
    AgentConfigured,
    AgentForked,
    BadInput,
    CorruptLog,
    EverlogError,
    MemoryEdited,
    NewerFormat,
    Record,
    SourceAttached,
    event_of,
)
from everlog.events.times import microseconds_of
from everlog.interfaces.http.core.file_answers import AnswerFolder, FileAnswer
from everlog.interfaces.http.core.moments import moment_of, time_of_parameter
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall, JsonResponse
from everlog.interfaces.http.core.tenants import TenantNames
from everlog.interfaces.http.core.uploads import uploaded
from everlog.interfaces.show import diff_command
from everlog.interfaces.wire.transfer import (
    DatasetQuery,
    DiffQuery,
    DiffShape,
    ImportBody,
    ImportedShape,
    RestoredRow,
    RestoredShape,
)
from everlog.store import ExportedStream, RestoreReport
from everlog.store.backup.export_file import ExportReader

EXPORT, LINES = "application/vnd.everlog.export", "application/jsonl"
KINDS = ("source:", "block:")
"""Beginnings of the names of streams that are no agents."""


async def export_agent(call: HttpCall) -> Response:
    """Export an agent, and the ancestors of a fork, with checksums into one file, which `restores` takes."""
    stream = call.stream
    with AnswerFolder() as folder:
        header = await call.service.system.export(stream, folder.path, with_sources=call.query.with_sources)
        for each in header.streams:
            if not owns_stream(call.names, each.agent_id):
                raise Refusal(409, "not-exportable", "The agent's records are shared with one that is not yours.")
        return FileAnswer(call.service, folder, EXPORT, {"Content-Disposition": 'attachment; filename="agent.everlog"'})


async def restore_agent(call: HttpCall) -> Any:
    """Restore an export under its original names. The whole file is checked first; what is there already stays."""
    async with uploaded(call.request, call.service) as path:
        if call.names.tenant:
            await call.service.ports.aside(_check_restorable, path, call.names)
        try:
            done = await call.service.system.restore(path)
        except (BadInput, CorruptLog, NewerFormat) as error:
            raise _of_the_export(error, path) from error
    return JsonResponse(_restored(call, done), 201)


async def import_conversation(call: HttpCall) -> Any:
    """Import a past conversation in one commit, without running a turn."""
    body: ImportBody = call.body
    said = conversation((msgspec.json.encode(line) for line in body.messages), "messages")
    agent = await call.agent()
    done = await agent.import_messages(said)
    return JsonResponse(
        ImportedShape(
            agent=call.shown(agent.agent_id), messages=len(said),
            summaries=done.summaries,
            delayed=None if done.delayed is None else str(done.delayed),
        ),
        201,
    )  # fmt: skip


async def write_dataset(call: HttpCall) -> Response:
    """Write the conversations of an agent as lines of JSON, in the form in which models are trained."""
    query: DatasetQuery = call.query
    if query.view == "models" and query.turns is not None:
        raise BadInput("`turns` divides what people saw: leave it out with the view `models`.")
    first, last = (_time(given, name) for given, name in ((query.since, "since"), (query.until, "until")))
    stream, folder, span = call.stream, AnswerFolder(), TimeSpan(first, last)
    shown, limit = call.shown(stream), call.service.options.limits.answer_bytes_max

    def lines(view: AgentView) -> Iterator[JsonLine]:
        if query.view == "people":
            yield from people_saw(view, span, query.turns)
        else:
            yield from models_saw(view, span, Counter())

    def write() -> None:
        reading, size = LocalSystem(call.service.system.store, ports=call.service.ports), 0
        with reading.view(stream) as view, folder.path.open("wb") as file:
            for line in lines(view):
                size += file.write(msgspec.json.encode({**line, "agent": shown}) + b"\n")
                if size > limit:
                    raise BadInput(f"The data set has more than {limit:,} bytes: ask for a shorter time.")

    with folder:
        await call.service.ports.aside(write)
        return FileAnswer(call.service, folder, LINES)


async def compare_moments(call: HttpCall) -> DiffShape:
    """Return what is different between two moments of an agent, each change with its cause."""
    query: DiffQuery = call.query
    reading = LocalSystem(call.service.system.store, ports=call.service.ports)
    stream, shown = call.stream, call.shown(call.stream)

    def compared() -> DiffShape:
        sides = []
        for given in (query.before, query.after):
            with reading.view(stream, as_of=moment_of(given)) as view:
                sides.append(diff_command.snapshot_of(view))
        found = diff_command.compare(reading, stream, *sides)
        shape = diff_command.shape(found, shown)
        return DiffShape(agent=shown, same=found.is_nothing, events=found.events, turns=found.turns, difference=shape)

    answer: DiffShape = await call.service.ports.aside(compared)
    return answer


def owns_stream(names: TenantNames, stream: str) -> bool:
    """Return True if a stream of an agent, a source or a shared block is the caller's."""
    return names.owns(bare(stream))


def bare(stream: str) -> str:
    """Return the name of a stream without the beginning that says its kind."""
    return next((stream.removeprefix(kind) for kind in KINDS if stream.startswith(kind)), stream)


def shown_stream(names: TenantNames, stream: str) -> str:
    """Return the name of a stream as the caller says it, with the beginning that says its kind."""
    name = bare(stream)
    return stream.removesuffix(name) + names.outer(name)


def _check_restorable(path: Path, names: TenantNames) -> None:
    """Raise the refusal of an export with anything that is not the tenant's. The sender has made the file: its
    records could name blocks and sources of others, or files of the server.
    """
    try:
        with closing(ExportReader(path)) as export:
            mine = all(owns_stream(names, stream.agent_id) for stream in export.contents.streams)
            if mine and all(_is_harmless(record, names) for record in export.records()):
                return
    except (BadInput, CorruptLog, NewerFormat) as error:
        raise _of_the_export(error, path) from error
    raise Refusal(403, "forbidden", "The export has names that are not yours. Nothing was restored.")


def _of_the_export(error: EverlogError, path: Path) -> EverlogError:
    """Return the error of a bad upload without the name of its temporary file; any other error as it is."""
    if str(path) not in str(error):
        return error
    return BadInput(str(error).replace(str(path), "the export"))


def _is_harmless(record: Record, names: TenantNames) -> bool:
    event = event_of(record)
    match event:
        case SourceAttached(source=source):
            return names.owns(source) if source else True
        case MemoryEdited(origin=origin):
            return names.owns(origin) if origin else True
        case AgentForked(parent=parent):
            return names.owns(parent)
        case AgentConfigured():
            models = (getattr(event, name, "") for name in ("model", "summarizer", "fallback", "deriver"))
            return not any(is_gguf(model) for model in models if model)
    return True


def _restored(call: HttpCall, done: RestoreReport) -> RestoredShape:
    rows = [
        RestoredRow(**_stream(call, each.stream), restored=each.written, ended=each.ended) for each in done.streams
    ]  # fmt: skip
    revived = call.shown(done.revived) if done.revived else None
    return RestoredShape(
        agent=call.shown(done.contents.agent_id), streams=rows, revived=revived, erased_since=done.erased_since
    )


def _stream(call: HttpCall, stream: ExportedStream) -> dict[str, Any]:
    return {
        "stream": shown_stream(call.names, stream.agent_id), "from_seq": stream.from_seq, "to_seq": stream.to_seq,
        "chain": stream.chain, "parent": call.shown(stream.parent) if stream.parent else None,
        "parent_seq": stream.parent_seq or None, "erased": stream.erased,
    }  # fmt: skip


def _time(given: str | None, name: str) -> int | None:
    when = time_of_parameter(given, name)
    return None if when is None else microseconds_of(when, name)
