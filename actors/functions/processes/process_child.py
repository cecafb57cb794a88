"""Run one function of a user in this process, and say what it returned; the program of `function_process.py`.

It is started by its path, in a process without the parent's modules. It imports nothing of everlog: a function that
needs a fresh process for each call should not wait for them. Standard input has the work, standard output gets the
outcome as JSON; what the function prints goes to standard error.
"""

import asyncio
import ctypes
import inspect
import os
import pickle
import resource
import signal
import sys
import traceback
from typing import Any

NEW_USER, NEW_PROCESSES, NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000
"""Flags of unshare(2)."""
ANY_ERROR = (BaseException,)
"""Exceptions of a user's function: everything that it raises is its outcome."""
DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of prctl(2)."""


def main() -> int:
    """Run the work of standard input."""
    work = pickle.loads(sys.stdin.buffer.read())  # noqa: S301 - the parent process writes it
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.path[:] = work["path"]
    if (fault := _confine(work["memory"], work["output"], network=work["network"])) is not None:
        _say(out, {"refused": fault})
        return 0
    _say(out, _outcome(work))
    return 0


def _confine(memory: int, output: int, *, network: bool) -> str | None:
    """Take the network away unless it is granted, and set the limits. Return what could not be done; None: all was.

    The function runs as the first process of a namespace, so that all that it starts ends with it.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        own = 0 if os.geteuid() == 0 else NEW_USER
        flags = own | NEW_PROCESSES | (0 if network else NEW_NETWORK)
        if libc.unshare(flags) == 0:
            _continue_in_child(libc)
        elif not network:
            return os.strerror(ctypes.get_errno())
    elif not network:
        return "only Linux can do that"
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (output, output))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return None


def _continue_in_child(libc: Any) -> None:
    """Return in a child, which ends with this process; this process waits for it, and ends as it does."""
    child = os.fork()
    if child == 0:
        libc.prctl(DIE_WITH_PARENT, signal.SIGKILL)
        return
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _outcome(work: dict[str, Any]) -> dict[str, Any]:
    """Return the value of the function, or its error as text. Every error of a user's code is a value here."""
    try:
        function = pickle.loads(work["function"])  # noqa: S301 - the parent process packed it
        value = function(**work["arguments"])
        if inspect.isawaitable(value):
            value = asyncio.run(_awaited(value))
    except MemoryError:
        return {"memory": True}
    except ANY_ERROR as error:
        return {"error": traceback.format_exception_only(error)[-1].strip()}
    return {"value": value}


async def _awaited(value: Any) -> Any:
    return await value


def _say(out: Any, outcome: dict[str, Any]) -> None:
    import msgspec

    def named(value: Any) -> str:
        return f"<{type(value).__name__}>"

    with out:
        try:
            out.write(msgspec.json.encode(outcome, enc_hook=named))
        except (TypeError, ValueError, OverflowError, RecursionError):
            out.write(msgspec.json.encode({"value": named(outcome.get("value"))}))


if __name__ == "__main__":
    sys.exit(main())
