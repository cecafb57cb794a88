"""Start the program of a server, and exchange its lines with the SDK, within limits. The SDK's own has none.

A program that writes an endless line, or that floods, is ended. Used by `sdk_session.py`; imports what the extra `mcp`
brings.
"""

import asyncio
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import mcp_types
from mcp.shared.message import SessionMessage

from everlog.actors.mcp.server_entry import ServerEntry

LINE_BYTES_MAX = 8 * 1024 * 1024
"""Length of one message of a program."""
FLOOD_BYTES_MAX = 64 * 1024 * 1024
"""Bytes that a program may write between two messages of ours."""
FLOOD_LINES_MAX = 10_000
"""Lines that it may write between them."""
STOP_S = 2.0
"""Seconds that a program has to end after its stdin is closed, and again after SIGTERM."""
STDERR_LINES = 10
"""Last lines of its stderr that are kept, for the error of a program that does not start."""
INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")
"""Variables that every program gets. All others may hold secrets: a server gets them only by name."""


class ServerProgram:
    """The program of one server, while it runs."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._unasked_bytes = self._unasked_lines = 0
        self.last_words: deque[str] = deque(maxlen=STDERR_LINES)
        self.fault = ""
        """Reason for which the program was ended; empty if it ended by itself, or still runs."""

    async def read(self, messages: Any) -> None:
        """Pass each message of the program on. Lines that are none are dropped: some programs print to stdout."""
        assert self._process.stdout is not None
        async with messages:
            while line := await self._line(self._process.stdout):
                self._unasked_bytes += len(line)
                self._unasked_lines += 1
                if self._unasked_bytes > FLOOD_BYTES_MAX or self._unasked_lines > FLOOD_LINES_MAX:
                    self.fault = (
                        f"it wrote {self._unasked_lines:,} lines ({self._unasked_bytes:,} bytes) that nobody asked for"
                    )
                    return
                try:
                    message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    continue
                try:
                    await messages.send(SessionMessage(message))
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return  # the session is over

    async def _line(self, stdout: asyncio.StreamReader) -> bytes:
        try:
            return await stdout.readline()
        except ValueError:
            self.fault = f"it wrote a line of more than {LINE_BYTES_MAX:,} bytes"
            return b""

    async def write(self, messages: Any) -> None:
        """Send each message to the program."""
        assert self._process.stdin is not None
        with suppress(OSError):
            async with messages:
                async for message in messages:
                    self._unasked_bytes = self._unasked_lines = 0
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    self._process.stdin.write(text.encode() + b"\n")
                    await self._process.stdin.drain()

    async def read_errors(self) -> None:
        """Keep the last lines of stderr."""
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(4096):
            self.last_words.extend(line[:500] for line in chunk.decode(errors="replace").splitlines() if line.strip())

    async def stop(self) -> None:
        """End the program, and those that it started: close its stdin, then SIGTERM, then SIGKILL."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        ended = asyncio.get_running_loop().create_task(self._drain())
        for number in (signal.SIGTERM, signal.SIGKILL):
            await asyncio.wait((ended,), timeout=0 if self.fault else STOP_S)
            if ended.done():
                break
            self._signal(number)
        await asyncio.wait((ended,), timeout=STOP_S)
        self._signal(signal.SIGKILL)  # of its group, which may hold others that outlive it
        ended.cancel()

    async def _drain(self) -> None:
        """Drop what the program still writes, until it has ended: it may wait for that, and its pipe must be closed."""
        assert self._process.stdout is not None
        while await self._process.stdout.read(LINE_BYTES_MAX):
            pass
        await self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


@asynccontextmanager
async def program_streams(
    entry: ServerEntry, environment: Mapping[str, str]
) -> AsyncIterator[tuple[Any, Any, ServerProgram]]:
    """Start the program, and yield the streams of messages from it and to it. Raises OSError if it cannot be started.

    `environment`: variables of this process; the program gets the few that it needs, and those that its entry names.
    """
    process = await asyncio.create_subprocess_exec(
        entry.command, *entry.args, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE, limit=LINE_BYTES_MAX, start_new_session=True, cwd=entry.folder or None,
        env={name: environment[name] for name in (*INHERITED, *entry.env) if name in environment},
    )  # fmt: skip
    program = ServerProgram(process)
    received, incoming = anyio.create_memory_object_stream[SessionMessage](0)
    outgoing, sent = anyio.create_memory_object_stream[SessionMessage](0)
    loop = asyncio.get_running_loop()
    work = [loop.create_task(one) for one in (program.read(received), program.write(sent), program.read_errors())]
    try:
        yield incoming, outgoing, program
    finally:
        await asyncio.shield(loop.create_task(_ended(program, work, (incoming, outgoing, received, sent))))


async def _ended(program: ServerProgram, work: list["asyncio.Task[None]"], streams: tuple[Any, ...]) -> None:
    for stream in streams:
        stream.close()
    reading, writing, errors = work
    for task in (reading, writing):
        task.cancel()
    await asyncio.gather(reading, writing, return_exceptions=True)
    await program.stop()
    await asyncio.wait((errors,), timeout=STOP_S)
    errors.cancel()
