"""The archive of a cluster as a Ray actor: the one process that imports LanceDB and an embedder; and the way to it."""

import os
from collections.abc import Sequence
from pathlib import Path

from actors.constants import ARCHIVE_NICENESS
from actors.real import RealClock
from events import ArchiveDown
from store import FileStore

from . import link
from .archivist import Answered, Archivist, Clerk, Question
from .failing import first_line
from .footprint import own_memory_bytes
from .indexes import index_of
from .notes import Notes
from .status import ArchiveStatus


class ArchiveActor:
    """One for each store and cluster, made when something is first searched. Ray starts it again when it dies.

    Its constructor cannot fail, whatever its node sees of the store.
    """

    def __init__(self, root: str) -> None:
        os.nice(ARCHIVE_NICENESS)  # agents come first
        clock = RealClock()
        note = Notes("archive", link.own_node(), clock=clock, environment=os.environ)

        def store() -> FileStore:
            return FileStore(Path(root), clock.now)

        self._archivist = Archivist(lambda: index_of(store(), clock), lambda stream: store().route(stream), note=note)
        self._archivist.begin()

    async def ask_many(self, questions: Sequence[Question]) -> Sequence[Answered]:
        """`Archivist.ask_many`, with ArchiveDown as a value for all."""
        try:
            return await self._archivist.ask_many(questions)
        except ArchiveDown as error:
            return [error] * len(questions)

    async def status(self) -> ArchiveStatus | None:
        """How far the index is; None where it cannot be opened."""
        try:
            found = await self._archivist.status()
        except ArchiveDown:
            return None
        return ArchiveStatus(
            embedder=found.embedder, memories=found.memories, messages=found.messages, behind=found.behind,
            memory_bytes=own_memory_bytes(),
        )  # fmt: skip


def clerk_of(root: str) -> Clerk:
    """The way to the archive of the cluster that this process has joined."""

    async def send(questions: Sequence[Question]) -> Sequence[Answered]:
        try:
            actor = link.made(root, "archive", ArchiveActor, max_restarts=-1, max_task_retries=3, get_if_exists=True)
            answers: Sequence[Answered] = await actor.ask_many.remote(questions)
        except link.RayError as error:
            raise ArchiveDown(f"the archive is gone: {first_line(error)}") from error
        return answers

    return Clerk(send)
