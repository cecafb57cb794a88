"""Define the keys of the files of defaults: their values, where each may stand, and what it is a default of.

Used by `default_files`, by `everlog config` and by `docs/make`. Imports nothing heavy: every command loads it.

A key never makes a command write to an agent that exists: `model` and the other settings of an agent are defaults of
new agents only, because the log of an existing agent has its own. A user who can write to a store must not be able to
run code of theirs, or to send a key elsewhere than the variables say: such keys are in the file of the user alone.
"""

from typing import Literal, NamedTuple

KeyScope = Literal["any", "user"]
"""Files that may have a key: both files, or only that of the user."""


class DefaultKey(NamedTuple):
    """One key of the files of defaults."""

    name: str
    option: str
    """Option or argument that the key is a default of."""
    meaning: str
    built_in: str
    """Default without any file, for people."""
    variable: str = ""
    """Environment variable that comes before the files; empty: there is none."""
    scope: KeyScope = "any"
    choices: tuple[str, ...] = ()
    """Allowed values; empty: any text."""
    is_list: bool = False
    """True if the value is a list of texts."""
    of_files: bool = False
    """True if these texts are paths of files, relative to the file of defaults."""
    new_agents: bool = False
    """True for a setting of an agent: the default applies when an agent is created."""


KEYS = (
    DefaultKey("store", "--store", "folder of the store", "~/.everlog", "EVERLOG_STORE", "user"),
    DefaultKey("runtime", "--runtime", "where agents run", "auto", "EVERLOG_RUNTIME", choices=("auto", "local", "ray")),
    DefaultKey("log", "--log", "level of the log of the program", "none", "EVERLOG_LOG",
               choices=("debug", "info", "warning", "error")),
    DefaultKey("base_url", "--base-url", "endpoint that serves the models", "https://api.openai.com/v1",
               "OPENAI_BASE_URL", "user"),
    DefaultKey("tools", "--tools", "files with your own functions, relative to the file of defaults", "none",
               scope="user", is_list=True, of_files=True),
    DefaultKey("mcp", "--mcp", "MCP servers whose functions agents get", "none", scope="user", is_list=True),
    DefaultKey("a2a", "--a2a", "remote agents that agents may ask", "none", scope="user", is_list=True),
    DefaultKey("agent", "NAME", "agent of `chat`, and of `send` with a text alone", "sam for `chat`"),
    DefaultKey("model", "--model", "model of a new agent", "offline", new_agents=True),
    DefaultKey("zone", "--zone", "time zone of a new agent", "UTC", new_agents=True),
    DefaultKey("preset", "--preset", "prompt and functions of a new agent", "chat", new_agents=True),
    DefaultKey("persona", "--persona", "persona of a new agent", "sam", new_agents=True),
    DefaultKey("human", "--human", "facts about the user, for a new agent", "basic", new_agents=True),
    DefaultKey("placement", "--placement", "placement of a new agent", "dedicated",
               choices=("dedicated", "shared")),
)  # fmt: skip
"""All keys, in the order of `everlog config`."""

BY_NAME = {key.name: key for key in KEYS}
