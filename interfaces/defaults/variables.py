"""List every environment variable of everlog, for people: docs/reference/variables.md is made from this table.

Used by `docs/make` and by `everlog doctor`, which reports variables that are not listed. A test compares the list with
the variables that the code reads: a new one needs a row here.
"""

from typing import NamedTuple


class EnvironmentVariable(NamedTuple):
    """One variable that everlog reads."""

    name: str
    meaning: str
    default: str
    key: str = ""
    """Key of the files of defaults with the same meaning; empty: there is none."""


PREFIX = "EVERLOG_"
GATEWAY_PREFIX = "EVERLOG_GATEWAY_"
"""Beginning of the variables of the gateway's limits, which `GatewayLimits` defines: one for each of its fields."""

VARIABLES = (
    EnvironmentVariable("EVERLOG_STORE", "folder of the store", "~/.everlog", "store"),
    EnvironmentVariable("EVERLOG_SERVER", "address of a server that commands talk to, instead of a store", "none"),
    EnvironmentVariable("EVERLOG_KEY", "key of that server", "no key"),
    EnvironmentVariable("EVERLOG_KEY_FILE", "file with the key, if EVERLOG_KEY is not set", "no key"),
    EnvironmentVariable("EVERLOG_RUNTIME", "where agents run: `auto`, `local` or `ray`", "auto", "runtime"),
    EnvironmentVariable("EVERLOG_CONFIG", "file of defaults of the user; empty: none is read",
                        "~/.config/everlog/config.toml"),
    EnvironmentVariable("EVERLOG_LOG", "level of the log of the program: `debug`, `info`, `warning` or `error`",
                        "no log", "log"),
    EnvironmentVariable("EVERLOG_LOG_FILE", "file that the log of the program is appended to", "stderr"),
    EnvironmentVariable("EVERLOG_MODELS", "file with descriptions of endpoints and models", "models.toml in the store"),
    EnvironmentVariable("EVERLOG_MCP", "file of the MCP servers that lend functions", "mcp.toml in the store"),
    EnvironmentVariable("EVERLOG_SHARDS", "range in which the number of shards follows their load, such as `2:16`, in "
                        "the environment of the cluster's head", "the number stays"),
    EnvironmentVariable("EVERLOG_STORE_MODE", "who may read new files of a store: `private` or `group`", "private"),
)  # fmt: skip
"""Variables of everlog, without those of the gateway's limits."""

DEVELOPERS = (
    EnvironmentVariable("EVERLOG_SEED", "text from which the tests draw their seeds", "everlog"),
    EnvironmentVariable("EVERLOG_DATA", "folder of public data sets for tests and benchmarks", "none"),
)
"""Variables of the tests and the benchmarks."""

OTHERS = (
    EnvironmentVariable("OPENAI_API_KEY", "key of the endpoint; an endpoint in models.toml may name another variable",
                        "no key"),
    EnvironmentVariable("OPENAI_BASE_URL", "endpoint of models that no description and no option names",
                        "https://api.openai.com/v1", "base_url"),
    EnvironmentVariable("OTEL_EXPORTER_OTLP_HEADERS",
                        "headers for the receiver of `everlog traces`, as `name=value,name=value`", "none"),
    EnvironmentVariable("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "the same; goes before the one above", "none"),
    EnvironmentVariable("RAY_ADDRESS", "cluster that commands join", "the cluster of the store"),
    EnvironmentVariable("XDG_CONFIG_HOME", "folder of the user's `everlog/config.toml`", "~/.config"),
    EnvironmentVariable("NO_COLOR", "print without colours, whatever its value", "not set"),
)  # fmt: skip
"""Variables that other programs define, and that everlog reads too."""
