"""Run a SELECT over all agents that the caller may see, and answer as JSON, CSV or a stream of Arrow."""

from typing import IO, Any, cast

import msgspec
from starlette.responses import Response

from everlog.events import BadInput
from everlog.interfaces.http.core.file_answers import AnswerFolder, FileAnswer
from everlog.interfaces.http.core.fleet_queries import QueryRun, over_fleet, position_of
from everlog.interfaces.http.core.routes import JSON, HttpCall
from everlog.interfaces.output import sql_output
from everlog.interfaces.show.sql_text import with_parameters
from everlog.interfaces.wire.sql import POSITION_KEY, SqlBody
from everlog.projections.fleet_views import FleetViews
from everlog.store import Snapshot

CSV, ARROW = "text/csv", "application/vnd.apache.arrow.stream"
MEDIA = {"json": JSON, "csv": CSV, "arrow": ARROW}


async def run_sql(call: HttpCall) -> Response:
    """Answer one SELECT over the views of all agents, at one position of their logs. Writes nothing.

    A tenant's query runs in an engine that has the tenant's records only, and may open no file.
    """
    body: SqlBody = call.body
    query = with_parameters(body.query, body.params)
    at, limit = call.service.ports.clock.now(), call.service.options.limits.answer_bytes_max
    folder = AnswerFolder()

    def answer(views: FleetViews, position: Snapshot, run: QueryRun) -> bool:
        told = position_of(call, views, position, at, check=body.check)
        schema, batches = views.select(query)
        with folder.path.open("wb") as file:
            out = cast("IO[bytes]", _Limited(file, limit, run))
            if body.format == "json":
                sql_output.write_json(sql_output.head(schema, told), batches, out)
            elif body.format == "arrow":
                shown = schema.with_metadata({POSITION_KEY: msgspec.json.encode(sql_output.position_shape(told))})
                marked = (batch.replace_schema_metadata(shown.metadata) for batch in batches)
                sql_output.write("arrow_stream", shown, marked, out)
            else:
                sql_output.write(body.format, schema, batches, out)
        return True

    with folder:
        await over_fleet(
            call, answer, as_of=body.as_of, agent=body.agent, skip_damaged=body.skip_damaged, stops_with_reader=True
        )
        return FileAnswer(call.service, folder, MEDIA[body.format])


class _Limited:
    """File that refuses to become too large, and stops a query that has no time left."""

    closed = False

    def __init__(self, file: IO[bytes], limit: int, run: QueryRun) -> None:
        self._file, self._limit, self._run, self._size = file, limit, run, 0

    def write(self, data: Any) -> int:
        self._run.check()
        size = len(memoryview(data).cast("B")) if not isinstance(data, bytes) else len(data)
        self._size += size
        if self._size > self._limit:
            raise BadInput(
                f"The answer has more than {self._limit:,} bytes. Ask for fewer columns or rows (LIMIT), or aggregate."
            )
        self._file.write(data)
        return size

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        self._file.flush()

    def isatty(self) -> bool:
        return False

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        """Leave the file open: it belongs to the caller."""
