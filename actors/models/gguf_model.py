"""A model that is a file: run by llama.cpp in this process, behind a server on a port of this machine.

Whoever asks finds what any other endpoint is: bytes in, bytes out. llama.cpp comes with the extra `local` (xllamacpp),
and is loaded when the first file is asked.
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
    """The file that a name means, whole."""
    return Path(name).expanduser().absolute()


def header(path: Path) -> GgufHeader:
    """What a file says of itself. Raises BadInput for one that is missing, cut off, or no GGUF file."""
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
    """What an agent is set up with for a file, where it is not told otherwise. Raises BadInput as `header` does."""
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
    """What llama.cpp can do with a file; `template` is another in place of its own."""
    tools = knows_tools(template) if template else head.knows_tools
    return Abilities(
        tools=tools, json_schema=True, grammar=True, parallel_calls=None, streaming=True, usage=True, stream_usage=True
    )


def findings_of(name: str, catalogue: Catalogue, at: int) -> ProbeFindings:
    """What is known of a file, in the shape of what a probe finds. Raises BadInput as `header` does."""
    head = header(path_of(name))
    entry = catalogue.models.get(name) or ModelEntry()
    said = {"file": f"{head.name or 'a model'} ({head.architecture}), made for {head.context_length:,} tokens"}
    return ProbeFindings(
        url="", model=name, at=at, server="llama.cpp", window=defaults_of(name, catalogue).window,
        abilities=abilities(head, _template(entry)), said=said,
    )  # fmt: skip


def _template(entry: ModelEntry) -> str:
    """The template that is used in place of the file's own; empty: none."""
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
    """Raises BadInput where llama.cpp is not installed."""
    if importlib.util.find_spec("xllamacpp") is None:
        raise BadInput(
            "A model that is a file needs llama.cpp, which is not installed here: pip install 'everlog[local]'. Or "
            "serve the file with a server of your own, and name it with --base-url."
        )


class LlamaServer:
    """llama.cpp with one file, started when it is first asked, and again where a larger window is needed.

    It has one slot: requests are sent one after the other, and what begins as the one before did is not read again.
    """

    def __init__(self, path: Path, template: str = "", threads: int | None = None) -> None:
        self._path, self._template, self._threads = path, template, threads
        self._server: Any = None
        self._window = 0
        self._endpoint: Any = None
        self._lock = asyncio.Lock()
        self._starting: asyncio.Task[Any] | None = None

    async def ask(self, request: bytes, window: int, on_delta: DeltaCallback | None = None) -> ModelResponse:
        """Send exactly these bytes, to a server with a window of at least `window`. Raises ModelError."""
        async with self._lock:
            endpoint = await self._ready(window)
            answer: ModelResponse = await endpoint.ask(request, on_delta=on_delta)
            return answer

    async def close(self) -> None:
        """Stop the server. Idempotent."""
        if self._starting is not None:
            await asyncio.gather(self._starting, return_exceptions=True)
            self._starting = None
        if self._endpoint is not None:
            await self._endpoint.close()
        self._endpoint = self._server = None

    async def _ready(self, window: int) -> Any:
        """The endpoint, once the file is loaded: a wait that is given up leaves it loading for who asks next."""
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
            self._server = await asyncio.shield(starting)
        finally:
            if starting.done():
                self._starting = None
        self._endpoint = ChatEndpoint(str(self._path), f"{self._server.listening_address}/v1", key_name="")

    def _start(self) -> Any:
        """A server that has loaded the file. Raises ModelError."""
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
    """One file, as a model. Those of one path share a server."""

    def __init__(self, name: str, server: LlamaServer | None = None, catalogue: Catalogue | None = None) -> None:
        """`name`: as `endpoints.served_name` gives it. `server`: the one that is shared; None: its own."""
        self.name, self._window = file_of(name)
        self._catalogue = catalogue or Catalogue()
        self._server = server or server_of(name, self._catalogue)

    async def ask(
        self, request: bytes, *, on_delta: DeltaCallback | None = None, spent: Spent = NOTHING
    ) -> ModelResponse:
        """Send exactly these bytes, once. Raises ModelError."""
        return await self._server.ask(request, self._asked(), on_delta)

    async def close(self) -> None:
        """Stop the server. Idempotent; it is started again where somebody asks."""
        await self._server.close()

    def _asked(self) -> int:
        try:
            return self._window or defaults_of(self.name, self._catalogue).window or WINDOW_TOKENS
        except BadInput as error:
            raise ModelError(str(error), kind="rejected") from error


def server_of(name: str, catalogue: Catalogue) -> LlamaServer:
    """A server for a file, with the template that its description names. Raises ModelError."""
    path, _ = file_of(name)
    entry = catalogue.models.get(path) or ModelEntry()
    try:
        return LlamaServer(path_of(path), _template(entry), entry.threads)
    except BadInput as error:
        raise ModelError(str(error), kind="rejected") from error
