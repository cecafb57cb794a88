"""Define routes: one table says path, method, role, and the shapes of request and answer of each.

The application is built from the table, and so is the OpenAPI document: neither can have a route that the other lacks.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from everlog.actors.agent_ref import AgentRef
from everlog.events import time_of
from everlog.interfaces.http.core.idempotency import CommandIds, ids_of_key
from everlog.interfaces.http.core.keys import Role
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.tenants import TenantNames
from everlog.store import LogReader

if TYPE_CHECKING:
    from everlog.interfaces.http.core.service import HttpService

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
JSON = "application/json"
EVENT_STREAM = "text/event-stream"
BODY_BYTES_MAX = 1024 * 1024
"""Size of a request's body, for routes that do not say another."""


class HttpCaller(msgspec.Struct, frozen=True, kw_only=True):
    """Sender of a request, as its key says."""

    key_id: str
    """Id of the key; empty: the server has no keys, and the sender is on this machine."""
    role: Role
    names: TenantNames


class NoQuery(msgspec.Struct, frozen=True):
    """No parameters."""


class HttpCall:
    """One request, with everything that a handler needs."""

    __slots__ = ("_stream", "body", "caller", "params", "query", "request", "service")

    def __init__(
        self,
        service: "HttpService",
        caller: HttpCaller,
        request: Request,
        *,
        params: Mapping[str, str],
        query: Any = None,
        body: Any = None,
    ) -> None:
        self.service = service
        self.caller = caller
        self.request = request
        self.params = params
        """Decoded parts of the path, by name."""
        self.query = query
        """Parameters, as the route's `query`."""
        self.body = body
        """Body, as the route's `body`; None if the route has none, or reads it itself."""
        self._stream = ""

    @property
    def stream(self) -> str:
        """Name in the store of the agent that the path names. The register is asked once."""
        if not self._stream:
            self._stream = self.service.system.store.stream_of(self.names.inner(self.params["agent"]))
        return self._stream

    @property
    def names(self) -> TenantNames:
        """Names of the caller's tenant."""
        return self.caller.names

    def opened(self, stream: str) -> tuple[LogReader, int]:
        """Return a reader of an agent's log, and the seq of its last record. Blocks: run it in a thread.

        Raises the refusal for an agent that does not exist, CorruptLog for one whose records are lost.
        """
        reader = self.service.system.store.reader(stream)
        head = reader.head(stream).seq
        if not head:
            self.service.system.store.check_not_lost(stream)
            raise not_found(f"agent {self.params['agent']!r}")
        return reader, head

    def shown(self, stream: str) -> str:
        """Return the name that the caller uses for a stream of its tenant."""
        return self.names.outer(stream)

    def new_ids(self, stream: str) -> CommandIds:
        """Return the ids that the command of this request may have: those of its Idempotency-Key, or a new id."""
        key = self.request.headers.get("idempotency-key")
        now = self.service.ports.clock.now()
        return CommandIds(self.service.ports.ids.new(now)) if key is None else ids_of_key(key, stream, now)

    async def command_ids(self, stream: str) -> CommandIds:
        """Return the ids of the command of this request, without the one that an earlier try does not have."""
        ids = self.new_ids(stream)
        if ids.earlier and await self.service.is_known(stream, ids.earlier):
            return CommandIds(ids.earlier)
        return ids

    async def agent(self) -> AgentRef:
        """Return a handle on the agent of the path: its first command has the id of this request."""
        stream = self.stream
        ids = await self.command_ids(stream)
        return self.service.system.handle(stream, by=self.caller.key_id, first_id=ids.id)


Handler = Callable[[HttpCall], Awaitable[Any]]
"""Answers a call: with a struct of the route's `answer`, or with a response of its own for any other media type."""


class Route(NamedTuple):
    """One route of the server."""

    method: Method
    path: str
    """Path with the names of its parts in braces: /api/v1/agents/{agent}."""
    handler: Handler
    summary: str
    """Verb and object, in the imperative."""
    role: Role = "read"
    query: type[msgspec.Struct] = NoQuery
    body: Any = None
    """Type of the JSON body; None: the route takes none."""
    answer: Any = None
    """Type of the JSON answer; None: 204, or another media type."""
    status: int = 200
    statuses: Sequence[int] = ()
    """Further statuses of success, with the same answer."""
    media: Sequence[str] = (JSON,)
    """Media types of the answer."""
    body_media: str = JSON
    body_types: Sequence[str] = ()
    """Media types of a body that the route reads itself, if there are several. Only for PUT, which no form can send."""
    body_max: int = BODY_BYTES_MAX
    operator: bool = False
    """True: the route concerns the whole store, and keys of tenants get 404."""
    hidden: bool = False
    """True for pages for people, which the OpenAPI document leaves out."""
    is_open: bool = False
    """True: no key is needed."""


RouteTable = Sequence[Route]


class JsonResponse(Response):
    """A struct as JSON."""

    media_type = JSON

    def __init__(self, answer: object, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(_encoder.encode(answer), status, dict(headers or {}))


_encoder = msgspec.json.Encoder()


def encode(answer: object) -> bytes:
    """Return a struct as JSON."""
    return _encoder.encode(answer)


def not_found(what: str) -> Refusal:
    """Return the refusal for a thing that does not exist, or that the caller may not know of."""
    return Refusal(404, "not-found", f"There is no {what} here.")


def check_run_id(run: str) -> None:
    """Raise the refusal for an id that no run can have."""
    if time_of(run) is None:
        raise not_found(f"run {run!r}")
