"""Where models are served and what they can do: descriptions of endpoints and models, and how a name leads to them.

Pure. A description comes from a file of the user's (`models.toml`), from what a probe found, or from `endpoints.toml`,
which is shipped; they count in this order. `catalogue.py` reads them, `probing.py` asks endpoints.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from everlog.events import BadInput, Sampling

CallingFormatName = Literal["native", "schema", "text"]

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_KEY = "OPENAI_API_KEY"
GGUF = ".gguf"
"""How the name of a model ends that is a file, run in the gateway's process."""


class Abilities(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What an endpoint can do with a model; None: not known."""

    tools: bool | None = None
    """It calls functions that it is told of (`tools`)."""
    json_schema: bool | None = None
    """It keeps replies to a JSON schema (`response_format`)."""
    grammar: bool | None = None
    """It keeps replies to a grammar (llama.cpp's)."""
    parallel_calls: bool | None = None
    """It was seen to call several functions in one reply."""
    streaming: bool | None = None
    usage: bool | None = None
    """It says how many tokens a call took."""
    stream_usage: bool | None = None
    """It says so at the end of a stream too."""

    def over(self, other: "Abilities") -> "Abilities":
        """These, and of what they do not know the other's."""
        mine = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}
        return msgspec.structs.replace(other, **mine)

    @property
    def preferred_format(self) -> CallingFormatName | None:
        """The way of calling functions that suits them; None where too little is known."""
        if self.tools:
            return "native"
        if self.json_schema:
            return "schema"
        return "text" if self.tools is False else None


class EndpointEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An endpoint as somebody described it: a table `[endpoints.NAME]`."""

    url: str
    key: str = ""
    """Name of the environment variable that holds its key, never the key; empty: none is sent."""
    models: Sequence[str] = ()
    """Names of the models that it serves, or patterns with * and ?."""
    window: int | None = None
    abilities: Abilities = Abilities()
    note: str = ""


class ModelEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model as somebody described it: a table `[models."NAME"]`. None: as it is known or found."""

    endpoint: str | None = None
    """Name of the endpoint that serves it."""
    window: int | None = None
    """Tokens."""
    calling: CallingFormatName | None = None
    stream: bool | None = None
    sampling: Sampling | None = None
    fallback: str | None = None
    summarizer: str | None = None
    abilities: Abilities = Abilities()
    price_in: float | None = None
    """What a million tokens of requests cost."""
    price_out: float | None = None
    price_cached: float | None = None
    """The same for those tokens of a request that the endpoint had in its cache."""
    chat_template: str | None = None
    """Of a GGUF file: the path of another template, in place of the file's own; `~` is the home folder."""
    threads: int | None = None
    """Of a GGUF file: how many threads it is run with; None: as llama.cpp sees fit."""


class ProbeFindings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a probe found out about one model at one address."""

    url: str
    model: str
    at: int
    """When, microseconds UTC."""
    server: str = ""
    """What kind of server it seems to be; empty: it does not say."""
    models: Sequence[str] = ()
    """All that it says it serves."""
    window: int | None = None
    abilities: Abilities = Abilities()
    said: Mapping[str, str] = {}
    """What came of each question, in words."""
    fault: str = ""
    """Why nothing could be found out; empty if something was."""


class ModelAddress(msgspec.Struct, frozen=True):
    """Where a model is asked."""

    name: str
    """What requests call it."""
    url: str
    """Empty: OPENAI_BASE_URL of the process that asks, else OpenAI."""
    endpoint: str = ""
    """Name of the endpoint, where it has one."""


class ModelDefaults(msgspec.Struct, frozen=True):
    """What an agent is set up with for a model, where it is not told otherwise; None: nothing is known."""

    window: int | None = None
    calling: CallingFormatName | None = None
    stream: bool | None = None
    sampling: Sampling | None = None
    fallback: str | None = None
    summarizer: str | None = None


class Catalogue(msgspec.Struct, frozen=True):
    """Everything that is known of endpoints and models."""

    endpoints: Mapping[str, EndpointEntry] = {}
    """The user's, by name."""
    models: Mapping[str, ModelEntry] = {}
    found: Sequence[ProbeFindings] = ()
    shipped: Mapping[str, EndpointEntry] = {}

    def place(self, name: str, base_url: str = "") -> ModelAddress:
        """Where the model of that name is asked; `base_url` is the address for those that no description leads to."""
        entry = self.models.get(name)
        endpoint = entry.endpoint if entry and entry.endpoint else self._serving(name)
        if endpoint:
            return self._at(endpoint, name)
        prefix, _, rest = name.partition("/")
        if rest and (prefix in self.endpoints or (prefix in self.shipped and not base_url)):
            return self._at(prefix, rest)
        if not base_url:
            base_url = next((found.url for found in self.found if name in found.models and not found.fault), "")
        return ModelAddress(name, base_url)

    def key_of(self, url: str) -> str:
        """Name of the variable with the key for an address: of the endpoint described there, else OpenAI's."""
        described = (*self.endpoints.values(), *self.shipped.values())
        return next((each.key for each in described if same_url(each.url, url)), OPENAI_KEY)

    def known(self, name: str, url: str) -> ModelDefaults:
        """What an agent is set up with for the model of that name at that address."""
        entry = self.models.get(name) or ModelEntry()
        found = self.found_of(name, url)
        endpoint = self._described(url)
        abilities = self.abilities(name, url)
        window = entry.window or (endpoint.window if endpoint else None) or (found.window if found else None)
        stream = None if abilities.streaming is None else abilities.streaming and abilities.stream_usage is not False
        return ModelDefaults(
            window=window,
            calling=entry.calling or abilities.preferred_format,
            stream=stream if entry.stream is None else entry.stream,
            sampling=entry.sampling,
            fallback=entry.fallback,
            summarizer=entry.summarizer,
        )

    def abilities(self, name: str, url: str) -> Abilities:
        """What the endpoint at that address can do with the model, as far as anybody knows."""
        entry, endpoint, found = self.models.get(name), self._described(url), self.found_of(name, url)
        known = (found.abilities if found else Abilities()).over(
            next((each.abilities for each in self.shipped.values() if same_url(each.url, url)), Abilities())
        )
        if endpoint:
            known = endpoint.abilities.over(known)
        return entry.abilities.over(known) if entry else known

    def found_of(self, name: str, url: str) -> ProbeFindings | None:
        """What was found out about a model at an address."""
        found = (each for each in self.found if each.model == name and same_url(each.url, url) and not each.fault)
        return next(found, None)

    def _described(self, url: str) -> EndpointEntry | None:
        return next((each for each in self.endpoints.values() if same_url(each.url, url)), None)

    def _serving(self, name: str) -> str:
        """The endpoint of the user's that says it serves a model of that name."""
        serving = (
            each
            for each, endpoint in self.endpoints.items()
            if any(fnmatchcase(name, pattern) for pattern in endpoint.models)
        )
        return next(serving, "")

    def _at(self, endpoint: str, name: str) -> ModelAddress:
        described = self.endpoints.get(endpoint) or self.shipped.get(endpoint)
        if described is None:
            known = ", ".join(sorted({*self.endpoints, *self.shipped}))
            raise BadInput(
                f"The model {name!r} is said to be served by the endpoint {endpoint!r}, which is described nowhere. "
                f"Add a table [endpoints.{endpoint}] to models.toml, or name one of: {known}."
            )
        return ModelAddress(name, described.url.rstrip("/"), endpoint)


def same_url(one: str, other: str) -> bool:
    """Whether two addresses are one, but for a slash at the end and the name of this machine."""
    return plain_url(one) == plain_url(other)


def plain_url(url: str) -> str:
    """An address as it is compared with others."""
    return (url or OPENAI_URL).rstrip("/").replace("://localhost", "://127.0.0.1")


def is_gguf(name: str) -> bool:
    """Whether the name is that of a file."""
    return name.endswith(GGUF)


_WINDOW = "?window="


def served_name(name: str, window: int) -> str:
    """What a model is asked for by: a file with the window that its server must have, any other by its name alone."""
    return f"{name}{_WINDOW}{window}" if window and is_gguf(name) else name


def file_of(served: str) -> tuple[str, int]:
    """The path and the window in what a file is asked for by; ("", 0) for what is no file. Window 0: its own."""
    path, mark, window = served.rpartition(_WINDOW)
    if mark and window.isdecimal() and is_gguf(path):
        return path, int(window)
    return (served, 0) if is_gguf(served) else ("", 0)
