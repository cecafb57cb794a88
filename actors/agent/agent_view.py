"""Read one agent at one moment: the basis of every command that only reads.

`LocalSystem.view` makes the views. Reading commands such as `everlog context`, `actors/replay` and reruns read through
them.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

import msgspec

from everlog.actors.formats import render_request
from everlog.actors.ports.effects import ArchiveClient, ThreadRunner, in_place
from everlog.actors.prompt.context import Context, context_of, is_configured
from everlog.events import AgentConfigured, BadInput, is_erased
from everlog.events.lifecycle import FunctionRef
from everlog.projections import HEAD, Projections, Row, activate
from everlog.store import LogReader, typed

if TYPE_CHECKING:
    from everlog.actors.memory.agent_search import AgentSearcher
    from everlog.projections.engine_pool import EnginePool


def schemas_in(rows: Iterable[Row]) -> dict[str, str]:
    """Return every function schema in rows of the projection `configurations`, by its sha256."""
    known: dict[str, str] = {}
    for row in rows:
        known.update(msgspec.json.decode(row["payload"]).get("schemas", {}))
    return known


class AgentView:
    """One agent at one moment, for reading. Writes nothing and locks nothing."""

    def __init__(
        self,
        agent_id: str,
        reader: LogReader,
        archive: ArchiveClient | None = None,
        projections: Projections | None = None,
        as_of: int | None = None,
        engines: "EnginePool | None" = None,
    ) -> None:
        """`projections`: query engine for many agents, one after the other; None: one for this view alone, from
        `engines` if they are given.

        `as_of`: seq of the view (inclusive); later records are not read. None: the head.
        """
        self.archive = archive
        """Client for searches by meaning; None: searches compare words only."""
        self._before: AgentView | None = None
        """View of the earlier moment that was requested last."""
        self.is_past = as_of is not None
        """True if the view has a fixed moment: later records change nothing in it."""
        self.agent_id = agent_id
        self.reader = reader
        self.head = reader.head(agent_id)
        self.seq = self.head.seq if as_of is None else as_of
        """Moment of the view: it shows the records up to this seq (inclusive)."""
        self._borrowed = projections is not None
        if engines is None:
            from everlog.projections.engine_pool import EnginePool  # a host that answers opens no view

            engines = EnginePool()
        self._engines = engines
        self._is_open = True
        self.projections = projections or self._engines.take()
        self.is_resumed = activate(self.projections, reader, agent_id, as_of)
        """True if the engine continues from a state, and has not read all records."""

    def at(self, as_of: int | None) -> "AgentView":
        """Return a view at a moment no later than this view's, valid until the next call; None: this view.

        Raises BadInput for a moment that is later than a fixed one.
        """
        if as_of is None or as_of == self.seq or (as_of > self.seq and not self.is_past):
            return self
        if as_of > self.seq:
            raise BadInput(f"This view shows {self.agent_id!r} as of seq {self.seq}: open a new one for seq {as_of}.")
        if self._before is None or self._before.seq != as_of:
            self._close_engine()
            self._before = AgentView(self.agent_id, self.reader, self.archive, None, as_of, self._engines)
        return self._before

    def rows(self, name: str, as_of: int | None = None, *, since: int = 1) -> list[dict[str, Any]]:
        """Return rows of a projection; `as_of` None: the view's own moment.

        `since`: seq of the first record that matters to the caller: rows of earlier records may be missing.
        """
        if as_of is not None and as_of < self.seq and not self.is_resumed:
            return self.projections.rows(name, self.agent_id, as_of)  # it has all records: no other engine is needed
        from everlog.projections.narrow_rows import READ_KINDS, narrow_rows

        view = self.at(as_of)
        if view.is_resumed and name in READ_KINDS:
            with self._engines.engine(self.agent_id) as engine:
                return narrow_rows(engine, name, self.reader, self.agent_id, since, view.seq)
        return view.projections.rows(name, self.agent_id)

    def context(self, as_of: int | None = None, turn: int | None = None) -> Context:
        """Return the context that the model would see, or in a call in `turn`: without inputs of later turns."""
        view = self.at(as_of)
        wanted = (self.agent_id, HEAD) if turn is None else (self.agent_id, HEAD, turn)
        rows = view.projections.answers("context_window", [wanted])[0]
        if not is_configured(rows):
            configured = (r for r in self.reader.read(self.agent_id) if r.type == AgentConfigured.kind)
            first = next((record.seq for record in configured if not is_erased(record.payload)), None)
            when = "its configuration was erased" if first is None else f"it was first set up at seq {first}"
            raise BadInput(f"{self.agent_id!r} had no context as of seq {view.seq}: {when}.")
        return context_of(self.agent_id, view.seq, rows, turn or 0)

    def schemas(self, functions: Iterable[FunctionRef] = ()) -> dict[str, str]:
        """Return every function schema in the log so far, by its sha256. Schemas of `functions` that were erased, and
        recorded again only later, are included.
        """
        known = schemas_in(self.rows("configurations"))
        if self.is_past and any(function.sha256 not in known for function in functions):
            for record in self.reader.read(self.agent_id, self.seq + 1):
                if record.type == AgentConfigured.kind and not is_erased(record.payload):
                    known.update(msgspec.json.decode(record.payload).get("schemas", {}))
        return known

    def request(self, as_of: int | None = None) -> bytes:
        """Render the request for the context. Raise BadInput if a part of it was erased."""
        view = self.at(as_of)
        context = view.context()
        schemas = view.schemas(context.config.functions)
        erased = [function.name for function in context.config.functions if function.sha256 not in schemas]
        if erased:
            raise BadInput(
                f"The schemas of {self.agent_id!r} were erased ({', '.join(erased)}), so its request cannot be shown. "
                f"`everlog send {typed(self.agent_id)}` records them again."
            )
        return render_request.request(context, schemas)

    def searcher(self, as_of: int | None = None, aside: ThreadRunner = in_place) -> "AgentSearcher":
        """Return a searcher as of a moment, in the agent's time zone then; UTC if its configuration was erased.

        `aside` runs its queries.
        """
        from everlog.actors.memory.agent_search import AgentSearcher

        view = self.at(as_of)
        payloads = [row["payload"] for row in view.rows("configurations") if row["living"]]
        zone = msgspec.json.decode(payloads[-1]).get("zone", "UTC") if payloads else "UTC"
        upto = view.seq if view.is_past else HEAD
        return AgentSearcher(view.projections, self.agent_id, upto, zone, archive=self.archive, aside=aside)

    def counts(self) -> tuple[int, int]:
        """Return the numbers of messages and of archival memories, as the memory header counts them."""
        newest = self.projections.states([self.agent_id]).sort_by("seq").select(["recall", "archival"]).to_pylist()[-1:]
        return next(((row["recall"] or 0, max(0, row["archival"] or 0)) for row in newest), (0, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the memory. Idempotent."""
        self._close_engine()
        if self._borrowed:
            self.projections.forget(self.agent_id)
        elif self._is_open:
            self._is_open = False
            self._engines.give_back(self.projections, self.agent_id)

    def _close_engine(self) -> None:
        if self._before is not None:
            self._before.close()
            self._before = None
