"""The operator's file of servers: what it may hold, what it refuses, and that writing changes nothing else."""

from pathlib import Path

import pytest

from everlog.actors.mcp import servers_toml
from everlog.actors.mcp.server_entry import OperatorRule, ServerEntry
from everlog.events import BadInput

FULL = """\
# Mine.
[servers.time]
command = "uvx"
args = ["mcp-server-time"]
env = ["TZ"]
only = ["get_*"]
effect = "read_only"

[servers.time.tools."get_secret*"]
approval = true

[servers.docs]
url = "https://example.com/mcp"
token = "DOCS_TOKEN"
headers = { X-Team = "DOCS_TEAM" }
call_s = 300
"""


def test_a_file_names_programs_and_addresses() -> None:
    """Both kinds of servers are read, with the operator's rules; the last rule that fits a function decides."""
    servers = servers_toml.parse_servers(FULL, "mcp.toml")
    assert servers["docs"] == ServerEntry(
        url="https://example.com/mcp", token="DOCS_TOKEN", headers={"X-Team": "DOCS_TEAM"}, call_s=300
    )
    time = servers["time"]
    assert (time.command, time.args, time.env) == ("uvx", ("mcp-server-time",), ("TZ",))
    assert (time.rule_of("get_time"), time.rule_of("get_secrets")) == (
        OperatorRule("read_only"), OperatorRule("read_only", approval=True),
    )  # fmt: skip
    assert (time.offers("get_time"), time.offers("set_time")) == (True, False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '[servers.a]\ncommand = "x"\nargs = ["--api-key=abc"]',
            r"line 3: servers.a.args: what stands there looks like",
        ),
        ('[servers.a]\ncommand = "x"\nargs = ["sk-abcdefgh12345"]', "looks like a secret"),
        ('[servers.a]\nurl = "https://example.com"\ntoken = "ghp-not-a-variable"', "name of an environment variable"),
        ('[servers.a]\nurl = "https://example.com"\nheaders = { X = "Bearer abcdefghij" }', "looks like a secret"),
        ('[servers.a]\nurl = "https://u:p@example.com"', "looks like a secret"),
        ('[servers.a]\nurl = "https://example.com?key=1"', "without a name, password or query"),
        ('[servers.a]\nurl = "http://example.com"\ntoken = "T"', "an address with https"),
        ('[servers.a]\nurl = "ftp://example.com"', "an address such as"),
        ('[servers.a]\ncommand = "x"\nurl = "https://example.com"', "either `command` or `url`"),
        ("[servers.a]\n", "either `command` or `url`"),
        ('[servers.a]\nurl = "https://example.com"\nenv = ["A"]', "belong to `command`"),
        ('[servers.a]\ncommand = "x"\ntoken = "A"', "belong to `url`"),
        ('[servers.a__b]\ncommand = "x"', "a name of 1 to 24"),
        ('[servers.a]\ncommand = "x"\ncall_s = 0', "line 3: servers.a.call_s: a number of seconds above 0"),
        ('[servers.a]\ncommand = "x"\ncall_s = 9999', "at most 600"),
        ('[servers.a]\ncommand = "x"\nshell = true', "line 1: servers.a: object contains unknown field `shell`"),
        ('[servers.a]\ncommand = "x"\neffect = "pure"', "line 3: servers.a.effect: invalid enum value"),
        ("[models.a]\n", "no others"),
        ("[servers", "is no TOML"),
    ],
)
def test_what_is_wrong_is_named_and_no_secret_is_repeated(text: str, words: str) -> None:
    """Each mistake has its line and field; the error never holds the value."""
    with pytest.raises(BadInput, match=words) as error:
        servers_toml.parse_servers(text, "mcp.toml")
    assert "sk-abcdefgh" not in str(error.value)


def test_adding_and_removing_leave_every_other_line(tmp_path: Path) -> None:
    """Comments and other servers stay; what was added reads the same as what was meant."""
    file = tmp_path / "mcp.toml"
    file.write_text(FULL)
    file.chmod(0o600)
    entry = ServerEntry(command="prog", args=('a "quoted" one', "näh\x7f"), tools={"x*": OperatorRule(approval=False)})
    servers_toml.add_server(tmp_path, "new", entry)
    assert servers_toml.server_of(tmp_path, "new") == entry
    assert file.read_text().startswith(FULL)
    with pytest.raises(BadInput, match="already"):
        servers_toml.add_server(tmp_path, "new", entry)
    servers_toml.remove_server(tmp_path, "time")
    assert set(servers_toml.servers_of(tmp_path)) == {"docs", "new"}
    assert file.read_text().startswith("# Mine.\n[servers.docs]")
    with pytest.raises(BadInput, match=r"There is no MCP server 'time'.*docs, new"):
        servers_toml.remove_server(tmp_path, "time")


def test_a_file_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    """It names programs that are run."""
    file = tmp_path / "mcp.toml"
    file.write_text(FULL)
    file.chmod(0o666)
    with pytest.raises(BadInput, match="chmod go-w"):
        servers_toml.servers_of(tmp_path)


def test_a_variable_names_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """EVERLOG_MCP comes before the file in the store."""
    file = tmp_path / "mine.toml"
    file.write_text(FULL)
    file.chmod(0o600)
    monkeypatch.setenv("EVERLOG_MCP", str(file))
    assert set(servers_toml.servers_of(tmp_path / "store")) == {"time", "docs"}
