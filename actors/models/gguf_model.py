"""Run a model from a file with llama.cpp in this process, behind a server on a local port.

To the caller such a model is an endpoint like any other: bytes in, bytes out. llama.cpp is an optional dependency, the
extra `local` (xllamacpp), and is imported when the first file is used. Used by the gateway, by `make_model.py`, and by
`everlog models`.
"""

import asyncio
import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import Any

from everlog.actors.models.gguf_header import GgufHeader, header_of, knows_tools
from everlog.actors.models.model_types import Abilities, Catalogue, ModelDefaults, ModelEntry, ProbeFindings, file_of
from everlog.actors.ports.agent_constants import GGUF_REPLY_FRACTION, WINDOW_TOKENS
from everlog.actors.ports.effects import NOTHING, DeltaCallback, ModelResponse, Spent
from everlog.events import BadInput, ModelError

HOST = "127.0.0.1"


def path_of(name: str) -> Path:
    """Return the absolute path that a name stands for."""
    return Path(name).expanduser().absolute()


def header(path: Path) -> GgufHeader:
    """Return the header of a file. Raise BadInput for a file that is missing, truncated, or no GGUF file."""
    from everlog.store import stamp_of

    stamp = stamp_of(path)
    if stamp is None:
        raise BadInput(f"There is no file {path}. Give the path of a model in the format GGUF, or another model.")
    return _header(path, stamp)


@lru_cache(maxsize=32)
def _header(path: Path, _stamp: object) -> GgufHeader:
    from everlog.store import mapped

    try:
        with mapped(path) as content:
            return header_of(content, str(path))
    except FileNotFoundError as error:
        raise BadInput(f"{path} is no file. Give the path of a model in the format GGUF.") from error


def defaults_of(name: str, catalogue: Catalogue) -> ModelDefaults:
    """Return the settings of an agent for a file, where nothing else is configured. Raise BadInput as `header` does."""
    head = header(path_of(name))
    entry = catalogue.models.get(name) or ModelEntry()
    can = abilities(head, _template(entry))
    return ModelDefaults(
        window=entry.window or min(head.context_length, WINDOW_TOKENS),
        calling=entry.calling or can.preferred_format,
        stream=True if entry.stream is None else entry.stream,
        sampling=entry.sampling,
        fallback=entry.fallback,
        summarizer=entry.summarizer,
    )


def abilities(head: GgufHeader, template: str = "") -> Abilities:
    """Return the abilities of llama.cpp with a file; `template` replaces the file's own chat template."""
    tools = knows_tools(template) if template else head.knows_tools
    return Abilities(
        tools=tools, json_schema=True, grammar=True, parallel_calls=None, streaming=True, usage=True, stream_usage=True
    )


def findings_of(name: str, catalogue: Catalogue, at: int) -> ProbeFindings:
    """Return what is known of a file, in the form of a probe's findings. Raise BadInput as `header` does."""
    head = header(path_of(name))
    entry = catalogue.models.get(name) or ModelEntry()
    said = {"file": f"{head.name or 'a model'} ({head.architecture}), made for {head.context_length:,} tokens"}
    return ProbeFindings(
        url="", model=name, at=at, server="llama.cpp", window=defaults_of(name, catalogue).window,
        abilities=abilities(head, _template(entry)), said=said,
    )  # fmt: skip


def _template(entry: ModelEntry) -> str:
    """Return the template that replaces the file's own; empty if there is none."""
    if not entry.chat_template:
        return ""
    from everlog.store import read_whole

    path = path_of(entry.chat_template)
    content = read_whole(path)
    if not content:
        raise BadInput(
            f"chat_template names {path}, where there is no such file, or nothing in it. Correct models.toml."
        )
    return content.decode(errors="replace")


def check_extra_installed() -> None:
    """Raise BadInput if llama.cpp is not installed."""
    if importlib.util.find_spec("xllamacpp") is None:
        raise BadInput(
            "A model that is a file needs llama.cpp, which is not installed here: pip install 'everlog[local]'. Or "
            "serve the file with a server of your own, and name it with --base-url."
        )


class LlamaServer:
    """Server of llama.cpp for one file. It starts with the first request, and restarts when a larger window is needed.

    The server has one slot: requests are sent one after the other, and the beginning that a request has in common with
    the one before it is not evaluated again.
    """

    def __init__(self, path: Path, template: str = "", threads: int | None = None) -> None:
        self._path, self._template, self._threads = path, template, threads
        self._server: Any = None
        self._window = 0
        self._endpoint: Any = None
        self._lock = asyncio.Lock()
        self._starting: asyncio.Task[Any] | None = None

    async def ask(self, request: bytes, window: int, on_delta: DeltaCallback | None = None) -> ModelResponse:
        """Send exactly these bytes, to a server with a window of at least `window`. Raise ModelError."""
        async with self._lock:
            endpoint = await self._ready(window)
            answer: ModelResponse = await endpoint.ask(request, on_delta=on_delta)
            return answer

    async def close(self) -> None:
        """Stop the server. Idempotent."""
        # Loading runs in a thread, which cannot be cancelled: wait for it, or its server would outlive this object.
        if self._starting is not None:
            await asyncio.gather(self._starting, return_exceptions=True)
            self._starting = None
        if self._endpoint is not None:
            await self._endpoint.close()
        self._endpoint = self._server = None

    async def _ready(self, window: int) -> Any:
        """Return the endpoint once the file is loaded. A cancelled caller leaves the file loading for the next one."""
        while self._starting is not None or self._endpoint is None or self._window < window:
            if self._starting is None:
                await self.close()
                self._window = window
                self._starting = asyncio.ensure_future(asyncio.to_thread(self._start))
            await self._started(self._starting)
        return self._endpoint

    async def _started(self, starting: "asyncio.Task[Any]") -> None:
        from everlog.actors.models.openai_client import ChatEndpoint

        try:
            # Shielded: the cancellation of one caller must not stop the start that others wait for.
            self._server = await asyncio.shield(starting)
        finally:
            if starting.done():
                self._starting = None
        self._endpoint = ChatEndpoint(str(self._path), f"{self._server.listening_address}/v1", key_name="")

    def _start(self) -> Any:
        """Start a server and load the file. Raise ModelError."""
        try:
            check_extra_installed()
            header(self._path)
        except BadInput as error:
            raise ModelError(str(error), kind="rejected") from error
        import xllamacpp

        wanted = xllamacpp.CommonParams()
        wanted.model.path = str(self._path)
        wanted.hostnames = [HOST]
        wanted.port = 0
        wanted.n_ctx = self._window
        wanted.n_parallel = 1
        wanted.n_predict = int(self._window * GGUF_REPLY_FRACTION)
        wanted.use_jinja = True
        wanted.ui = wanted.endpoint_slots = False
        wanted.verbosity = -1
        if self._threads:
            wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = self._threads
        if self._template:
            wanted.chat_template = self._template
        try:
            return xllamacpp.Server(wanted)
        except (RuntimeError, ValueError) as error:
            raise ModelError(
                f"llama.cpp cannot run {self._path} with a window of {self._window:,} tokens ({error}). It may be too "
                "large for the memory, of a kind that this llama.cpp does not know, or damaged: try a smaller "
                "--window, or another file.",
                kind="rejected",
            ) from error


class GgufModel:
    """Model from one file. Models of the same path can share a server."""

    def __init__(self, name: str, server: LlamaServer | None = None, catalogue: Catalogue | None = None) -> None:
        """`name`: as `served_name` in `model_types.py` returns it.
        `server`: a shared server; None: a server of its own.
        """
        self.name, self._window = file_of(name)
        self._catalogue = catalogue or Catalogue()
        self._server = server or server_of(name, self._catalogue)

    async def ask(
        self, request: bytes, *, on_delta: DeltaCallback | None = None, spent: Spent = NOTHING
    ) -> ModelResponse:
        """Send exactly these bytes, once. Raise ModelError."""
        return await self._server.ask(request, self._asked(), on_delta)

    async def close(self) -> None:
        """Stop the server. Idempotent; the next request starts it again."""
        await self._server.close()

    def _asked(self) -> int:
        try:
            return self._window or defaults_of(self.name, self._catalogue).window or WINDOW_TOKENS
        except BadInput as error:
            raise ModelError(str(error), kind="rejected") from error


def server_of(name: str, catalogue: Catalogue) -> LlamaServer:
    """Return a server for a file, with the template that its description names. Raise ModelError."""
    path, _ = file_of(name)
    entry = catalogue.models.get(path) or ModelEntry()
    try:
        return LlamaServer(path_of(path), _template(entry), entry.threads)
    except BadInput as error:
        raise ModelError(str(error), kind="rejected") from error
