"""Arguments and help of the commands that other programs are reached by: a server, its keys, and traces. Imports
nothing heavy.

Used by `command_parser`, which is loaded at each start of `everlog`.
"""

import argparse

from everlog.interfaces.cli.args_grants import tools
from everlog.interfaces.cli.args_selection import names, times
from everlog.interfaces.cli.args_shared import base_url, json, placement, runtime, shards
from everlog.interfaces.cli.command_spec import CommandSpec
from everlog.interfaces.common import argument_values

_SERVE = """\
Answers HTTP in front of the agents of the store: /api/v1, described at
/openapi.json and /docs. Several servers can stand in front of one cluster; none
has state of its own. Listens on this machine only, and then needs no key as
long as the store has none. With another --host it needs keys: see `everlog keys
create`. SIGTERM and Ctrl-C stop it: streams end with a position to resume at,
and turns are finished where their agents run. docs/how_to/serve.md has the
steps to a server on the internet."""
_CONSOLE = """\
Opens the console of the server that answers at the port, and starts one on this
machine if none does; Ctrl-C stops that one. If the store has keys, the address
is a link that signs one browser in, once, within five minutes, for twelve
hours. docs/how_to/console.md shows the pages."""
_KEYS = """\
A key is shown once; the store has its SHA-256 only. Roles: `read` reads
agents; `talk` also talks to them and edits their memory; `admin` also creates,
deletes and erases them. With --tenant the key sees only agents, sources and
shared blocks of that tenant, which are named TENANT~NAME in the store."""

_TRACES = """\
A trace for each turn that was opened in the time: a span for the turn, its
steps, its requests to models and its functions, by OpenTelemetry's conventions
for generative AI. It is made from the log, so the past can be exported, and
again: the ids stay the same, and a turn's trace has the id of the event that
opened it. Unfinished turns are left out. Keys for the receiver are read from
OTEL_EXPORTER_OTLP_HEADERS. Words of people and models are only in it with
--content."""

_MCP_ADD = """\
Starts the server, shows what it offers, and writes it into mcp.toml in the
store (EVERLOG_MCP names another file). Secrets are never written: --env and
--token take the names of variables. With that you accept what the server says
of its functions; if it says something else later, calls are refused until
`everlog mcp refresh NAME --accept`. docs/how_to/use_mcp_servers.md has the
steps."""
_MCP_TEST = """\
Starts the server, and shows each function with the name that models call, with
its effect, and with whether calls wait for a person. Exit code 1: the server
offers something else than what was accepted."""

_A2A_ADD = """\
Reads the card of an agent of another program, and writes it into a2a.toml in
the store. Agents ask it by the function ask_NAME, if --a2a NAME gives it to
them. Secrets are never written: --token takes the name of a variable. Models
read --description, or what the card says now, and nothing that it says later.
docs/how_to/a2a.md has the steps."""

_MCP_SERVE = """\
Speaks the Model Context Protocol on stdin and stdout, for a program on this
machine that starts it, and ends with it. `everlog serve` answers the same at
/mcp, behind keys. docs/how_to/serve_mcp.md has the entries for programs."""


def _serving(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", metavar="ADDRESS", default="127.0.0.1",
                        help="address to listen on; others need keys (default: 127.0.0.1)")  # fmt: skip
    parser.add_argument("--port", metavar="N", type=argument_values.port, default=8284,
                        help="port to listen on; 0 chooses a free one (default: 8284)")  # fmt: skip
    parser.add_argument("--hostname", metavar="NAME", action="append", default=[],
                        help="name by which clients reach the server; repeatable")  # fmt: skip
    parser.add_argument("--origin", metavar="URL", action="append", default=[],
                        help="origin of pages that may call the server from a browser; repeatable")  # fmt: skip
    parser.add_argument("--webhook-host", metavar="HOST", action="append", default=[],
                        help="host[:port] that webhooks may be sent to at any address; repeatable")  # fmt: skip
    parser.add_argument("--rate", metavar="N", type=argument_values.decimal, default=1000.0,
                        help="requests of one key in a second; 0: no limit (default: 1000)")  # fmt: skip
    placement(parser)
    shards(parser)


def _opening(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", metavar="N", type=argument_values.port, default=8284,
                        help="port to listen on; 0 chooses a free one (default: 8284)")  # fmt: skip
    parser.add_argument("--no-browser", action="store_true", help="print the address, and open no browser")
    placement(parser)
    shards(parser)
    parser.set_defaults(host="127.0.0.1", hostname=[], origin=[], webhook_host=[], rate=1000.0)


def _creating(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("label", metavar="NAME", help="what the key is for")
    parser.add_argument("--role", metavar="ROLE", choices=("read", "talk", "admin"), default="talk",
                        help="what the key allows: read, talk or admin (default: talk)")  # fmt: skip
    parser.add_argument("--tenant", metavar="TENANT", default="",
                        help="tenant whose agents the key sees (default: all agents)")  # fmt: skip
    parser.add_argument("--expires", metavar="DURATION", type=argument_values.duration,
                        help="time after which the key is refused, such as 90d (default: never)")  # fmt: skip


def _revoking(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="id of the key, or its beginning")


def _tracing(parser: argparse.ArgumentParser) -> None:
    names(parser)
    times(parser)
    parser.add_argument(
        "--otlp", metavar="URL", help="send the spans to a receiver, such as http://127.0.0.1:4318, as OTLP/JSON"
    )
    parser.add_argument("--out", metavar="FILE", help="write the spans to FILE, as OTLP/JSON, one request per line")
    parser.add_argument("--content", action="store_true", help="include what users, the agent and its functions said")
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")


def _server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server_name", metavar="NAME", help="name of the server")


def _adding_server(parser: argparse.ArgumentParser) -> None:
    _server(parser)
    parser.add_argument("--command", dest="mcp_command", metavar="LINE", help="command line that starts the server")
    parser.add_argument("--url", metavar="URL", help="address of a server that is reached over HTTP")
    parser.add_argument("--env", metavar="VARIABLE", action="append", default=[],
                        help="environment variable that the command gets; repeatable")  # fmt: skip
    parser.add_argument("--folder", metavar="DIR", help="folder in which the command runs")
    parser.add_argument("--token", metavar="VARIABLE", help="variable with the token that the address needs")
    parser.add_argument("--header", metavar="NAME=VARIABLE", action="append", default=[],
                        help="header of requests, and the variable with its value; repeatable")  # fmt: skip
    parser.add_argument("--only", metavar="PATTERN", action="append", default=[],
                        help="functions that agents get, such as 'get_*'; repeatable (default: all)")  # fmt: skip


def _serving_mcp(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--agent", metavar="NAME", help="the one agent that the program sees (default: all agents)")
    parser.add_argument("--role", metavar="ROLE", choices=("read", "talk"), default="talk",
                        help="what the program may do: read or talk (default: talk)")  # fmt: skip
    placement(parser)
    shards(parser)


def _remote(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("remote_name", metavar="NAME", help="name for the remote agent")


def _adding_remote(parser: argparse.ArgumentParser) -> None:
    _remote(parser)
    parser.add_argument("url", metavar="URL", help="address of its card, or the one below which the card is")
    parser.add_argument("--description", metavar="TEXT", help="what it can be asked for, in words for models")
    parser.add_argument("--token", metavar="VARIABLE", help="variable with the token that it needs")
    parser.add_argument("--header", metavar="NAME=VARIABLE", action="append", default=[],
                        help="header of requests, and the variable with its value; repeatable")  # fmt: skip
    parser.add_argument("--without-approval", action="store_true", help="ask it without waiting for a person")
    parser.add_argument("--repeats", action="store_true",
                        help="it takes each message once by its id, so one that was cut off is sent again")  # fmt: skip


def _refreshing(parser: argparse.ArgumentParser) -> None:
    _server(parser)
    parser.add_argument("--accept", action="store_true", help="let agents get what the server offers now")


COMMANDS = (
    CommandSpec("serve", "http.serve_command:serve", "answer HTTP in front of the agents of the store",
                "everlog serve --port 8284", (_serving, runtime, tools, base_url, json), _SERVE),
    CommandSpec("console", "http.console_command:console", "open the web console of the store in a browser",
                "everlog console", (_opening, runtime, tools, base_url, json), _CONSOLE),
    CommandSpec("keys create", "http.keys_commands:create", "create a key of a server, and show it once",
                "everlog keys create phone --role talk", (_creating, json), _KEYS),
    CommandSpec("keys list", "http.keys_commands:list_all", "list the keys of a server", "everlog keys list",
                (json,), reads_only=True),
    CommandSpec("keys revoke", "http.keys_commands:revoke", "revoke a key, at once and for ever",
                "everlog keys revoke 019b8d2e", (_revoking, json)),
    CommandSpec("mcp add", "mcp.mcp_commands:add", "add a server that lends functions to agents",
                'everlog mcp add time --command "uvx mcp-server-time"', (_adding_server, json), _MCP_ADD,
                usage="NAME --command LINE | --url URL"),
    CommandSpec("mcp list", "mcp.mcp_commands:list_all", "list the servers that lend functions", "everlog mcp list",
                (json,), reads_only=True),
    CommandSpec("mcp test", "mcp.mcp_commands:test", "ask a server, and show its functions as agents get them",
                "everlog mcp test time", (_server, json), _MCP_TEST, reads_only=True),
    CommandSpec("mcp refresh", "mcp.mcp_commands:refresh", "show what changed at a server, and accept it",
                "everlog mcp refresh time --accept", (_refreshing, json)),
    CommandSpec("mcp remove", "mcp.mcp_commands:remove", "remove a server", "everlog mcp remove time",
                (_server, json)),
    CommandSpec("mcp serve", "http.mcp.stdio_command:serve", "be a server of agents for a program that speaks MCP",
                "everlog mcp serve --agent sam", (_serving_mcp, runtime, tools, base_url), _MCP_SERVE),
    CommandSpec("a2a add", "a2a.a2a_commands:add", "add an agent of another program, which agents may ask",
                "everlog a2a add partner https://agents.example.com/partner --token PARTNER_KEY",
                (_adding_remote, json), _A2A_ADD),
    CommandSpec("a2a list", "a2a.a2a_commands:list_all", "list the remote agents that may be asked", "everlog a2a list",
                (json,), reads_only=True),
    CommandSpec("a2a test", "a2a.a2a_commands:test", "read the card of a remote agent, and show it",
                "everlog a2a test partner", (_remote, json), reads_only=True),
    CommandSpec("a2a remove", "a2a.a2a_commands:remove", "remove a remote agent", "everlog a2a remove partner",
                (_remote, json)),
    CommandSpec("traces", "show.traces_command:traces", "export turns as traces of OpenTelemetry",
                "everlog traces 'support-*' --since 1d --otlp http://127.0.0.1:4318", (_tracing, json), _TRACES,
                reads_only=True, usage="[PATTERN ...] --otlp URL | --out FILE"),
)  # fmt: skip
"""In the order of the help."""
