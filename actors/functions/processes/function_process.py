"""Run a user's function in a process of its own, with limits of memory, output and network.

A thread cannot be stopped, and what it does wrong happens to all agents of the process. A process can be killed: at its
time limit, when its turn is cancelled, and when it takes too much. Used by `run_function.py`. The program of the
process is `process_child.py`.
"""

import asyncio
import contextlib
import functools
import os
import pickle
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from everlog.actors.functions.function_text import failure
from everlog.actors.functions.tools import ProcessLimits, Tool
from everlog.actors.functions.user_modules import is_of_user
from everlog.actors.ports import function_call
from everlog.events import FunctionError, FunctionResult

CHILD = Path(__file__).with_name("process_child.py")
OUTPUT_TAIL_CHARS = 500
"""Characters of what the function printed that an error shows."""
_INHERITED = ("HOME", "LANG", "LC_ALL", "PATH", "TZ")
"""Variables that every process gets."""
_PACKING = (Exception,)
"""Exceptions that a user's objects may raise while they are pickled."""


async def call(tool: Tool, arguments: Mapping[str, Any]) -> Any:
    """Run a function and return its value; a FunctionResult if its process was killed or died, because its effect may
    or may not have happened. Raises FunctionError if the function failed or was not run. A cancellation kills it.
    """
    assert tool.process is not None
    try:
        return await _call(tool.name, packed(tool.name, tool.function), arguments, tool.process)
    except _ProcessDied as died:
        text, unknown = failure(tool.name, FunctionError(str(died))), tool.effect != "read_only"
        return FunctionResult(text=text, call_id="", name=tool.name, ok=False, unknown=unknown)


class _ProcessDied(Exception):
    """The process of a function was killed, or died."""


@functools.lru_cache(maxsize=256)
def packed(name: str, function: Callable[..., Any]) -> bytes:
    """Return a function as bytes, with the code of its user's file. Raises FunctionError if it cannot be sent."""
    import cloudpickle

    module = sys.modules.get(getattr(function, "__module__", None) or "")
    known = cloudpickle.list_registry_pickle_by_value()
    own = module if module is not None and is_of_user(module) and module.__name__ not in known else None
    try:
        with _by_value(cloudpickle, own):
            data: bytes = cloudpickle.dumps(function)
    except _PACKING as error:
        raise FunctionError(
            f"it was not run: {name} cannot be sent to a process of its own ({error}). What it uses must be made "
            "inside of it, not around it."
        ) from error
    return data


@contextlib.contextmanager
def _by_value(cloudpickle: Any, module: ModuleType | None) -> Iterator[None]:
    if module is None:
        yield
        return
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


async def _call(name: str, function: bytes, arguments: Mapping[str, Any], limits: ProcessLimits) -> Any:
    """Run the function and return its value. Raises FunctionError if it failed, _ProcessDied if it was killed."""
    work = {
        "function": function, "arguments": dict(arguments), "path": sys.path, "memory": limits.memory_mb << 20,
        "output": limits.output_bytes, "network": limits.network,
    }  # fmt: skip
    environment = _environment(name, limits)
    with tempfile.TemporaryDirectory(prefix="everlog-", ignore_cleanup_errors=True) as folder:
        given, said, printed, news = (Path(folder, file) for file in ("work", "outcome", "printed", "progress"))
        given.write_bytes(pickle.dumps(work))
        # Files, and not pipes: their size can be limited, and no one has to read while the function runs.
        with given.open("rb") as stdin, said.open("wb") as stdout, printed.open("wb") as stderr:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", str(CHILD), stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True,
                cwd=folder, env={**environment, function_call.PROGRESS_FILE: str(news)},
            )  # fmt: skip
        try:
            code = await _ended(process, news)
        finally:
            _kill(process)
            await process.wait()
        if max(said.stat().st_size, printed.stat().st_size) >= limits.output_bytes:
            raise _ProcessDied(f"it printed or returned {limits.output_bytes:,} bytes or more, its limit.")
        return _value(name, said.read_bytes(), printed.read_bytes(), code, limits)


async def _ended(process: asyncio.subprocess.Process, news: Path) -> int:
    """Wait for the end of the process and return its code. Report the newest line of its progress meanwhile."""
    ending = asyncio.ensure_future(process.wait())
    last = ""
    try:
        while not (await asyncio.wait((ending,), timeout=function_call.PROGRESS_S))[0]:
            line = function_call.newest_line(news)
            if line and line != last:
                function_call.progress(line)
                last = line
    finally:
        ending.cancel()
    return ending.result()


def _environment(name: str, limits: ProcessLimits) -> dict[str, str]:
    if missing := [variable for variable in limits.variables if variable not in os.environ]:
        raise FunctionError(f"it was not run: the variable {missing[0]}, which {name} needs, is not set here.")
    return {one: os.environ[one] for one in (*_INHERITED, *limits.variables) if one in os.environ}


def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill the process and what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _value(name: str, outcome: bytes, printed: bytes, code: int, limits: ProcessLimits) -> Any:
    """Return the value that the process wrote. Raises FunctionError, _ProcessDied."""
    try:
        said = msgspec.json.decode(outcome, type=dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError):
        tail = printed.decode(errors="replace")[-OUTPUT_TAIL_CHARS:].strip()
        raise _ProcessDied(f"its process died with the code {code}{f': {tail}' if tail else '.'}") from None
    if "refused" in said:
        raise FunctionError(
            f"it was not run: the network could not be taken away from its process ({said['refused']}). The author of "
            f"{name} can grant it: ProcessLimits(network=True)."
        )
    if "memory" in said:
        raise _ProcessDied(f"it needed more than {limits.memory_mb:,} MiB of memory, its limit.")
    if "error" in said:
        raise FunctionError(said["error"])
    return said.get("value")
