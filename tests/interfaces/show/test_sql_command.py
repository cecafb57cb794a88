"""`everlog sql`: one query over all agents."""

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

from everlog.projections import DERIVER
from everlog.store import FileStore
from tests.support.cli.command_line import Line
from tests.support.seeds import split


@pytest.fixture
def fleet(cli: Line, tmp_path_factory: pytest.TempPathFactory) -> Line:
    """Return a store with two agents that have messages; the log of one is sealed, and has later records. Made once,
    and copied.
    """
    made = tmp_path_factory.getbasetemp() / "sql-fleet"
    if not made.exists():
        cli.ok("send", "sam", "I sail")
        cli.ok("send", "ann", "I paint, and I \N{SNOWMAN} snow")
        cli.ok("log", "seal", "sam")
        cli.ok("send", "sam", "I sail again")
        shutil.copytree(cli.root, made)
    else:
        shutil.copytree(made, cli.root)
    return cli


def rows(cli: Line, query: str, *more: str) -> list[list[object]]:
    found: list[list[object]] = cli.json("sql", query, *more)["rows"]
    return found


def test_it_counts_what_the_logs_hold_sealed_or_not(fleet: Line) -> None:
    """The result has every record of every agent once, whatever file the record is in."""
    for name in ("sam", "ann"):
        said = [[event["seq"], event["type"]] for event in fleet.lines("events", name)]
        assert rows(fleet, f"SELECT seq, type FROM records WHERE agent_id = '{name}' ORDER BY seq") == said


def test_the_position_is_reported(fleet: Line) -> None:
    """The JSON has the exact position; for people, stderr has one line, and with --position one line for each
    partition.
    """
    shape = fleet.json("sql", "SELECT 1 AS one")
    assert shape["columns"] == [{"name": "one", "type": "int32"}]
    assert sum(part["records"] for part in shape["partitions"]) == shape["records"]
    assert shape["left_out"] == []
    _, _, err = fleet("sql", "SELECT 1")
    assert err.endswith(f" UTC, 2 partitions, {shape['records']} records\n")
    _, _, err = fleet("sql", "SELECT 1", "--position")
    assert err.count("up to commit") == 2


def test_a_table_is_cut_and_says_so(fleet: Line) -> None:
    """Of many rows the first are shown, with the number of the others."""
    said = fleet.ok("sql", "SELECT range FROM range(60)")
    assert "and 10 more rows" in said
    assert "more rows" not in fleet.ok("sql", "SELECT range FROM range(60)", "--rows", "0")
    assert "no rows" in fleet.ok("sql", "SELECT * FROM agents WHERE false")


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow"])
def test_what_is_exported_is_read_by_others(fleet: Line, tmp_path: Path, form: str) -> None:
    """DuckDB and pyarrow open the files without everlog, and read the same rows."""
    out = tmp_path / f"messages.{form}"
    query = (
        "SELECT agent_id, seq, role, text, said_at, tokens FROM messages JOIN turns USING (agent_id, turn) ORDER BY ALL"
    )
    fleet.ok("sql", query, "--format", form, "--out", str(out))
    expected = rows(fleet, query)
    assert len(expected) >= 6
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        found = ipc.open_file(out).read_all() if form == "arrow" else None
        source = "found" if found is not None else f"'{out}'"
        read = db.execute(f"SELECT agent_id, seq, role, text, epoch_us(said_at), tokens FROM {source}").fetchall()
        times = db.execute(
            "SELECT epoch_us(t::TIMESTAMPTZ) FROM (SELECT unnest(?) AS t)", [[row[4] for row in expected]]
        )
        assert read == [(*row[:4], at, row[5]) for row, (at,) in zip(expected, times.fetchall(), strict=True)]
    assert not list(tmp_path.glob(".*part"))


def test_pandas_reads_an_export(fleet: Line, tmp_path: Path) -> None:
    """Pandas opens a query's file and the file of `everlog export` directly, in a process without everlog."""
    answer, whole = tmp_path / "agents.parquet", tmp_path / "sam.everlog"
    fleet.ok("sql", "SELECT agent_id, events FROM agents ORDER BY ALL", "--format", "parquet", "--out", str(answer))
    fleet.ok("export", "sam", str(whole))
    code = (
        "import sys, pandas; names, log = map(pandas.read_parquet, sys.argv[1:]);"
        "print(list(names.agent_id), len(log), log.type.iloc[0], 'store' in sys.modules)"
    )
    read = subprocess.run(
        [sys.executable, "-I", "-c", code, str(answer), str(whole)], capture_output=True, text=True, check=True
    )
    events = fleet.lines("events", "sam")
    assert read.stdout.split("\n")[0] == f"['ann', 'sam'] {len(events)} agent_created False"


def test_a_sum_is_a_plain_number(fleet: Line, tmp_path: Path) -> None:
    """DuckDB's sums of 128 bits become whole numbers that every tool can read."""
    out = tmp_path / "sum.parquet"
    fleet.ok("sql", "SELECT sum(seq) AS s FROM records", "--format", "parquet", "--out", str(out))
    assert str(pq.read_schema(out).field("s").type) == "int64"
    assert rows(fleet, "SELECT sum(seq) AS s FROM records")[0][0] > 0


def test_a_query_comes_from_a_file_or_stdin(fleet: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-f FILE` and `-` work like a query on the command line."""
    (tmp_path / "q.sql").write_text("SELECT count(*) FROM agents;\n")
    assert rows(fleet, "--file", str(tmp_path / "q.sql")) == [[2]]
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT count(*) FROM agents"))
    assert rows(fleet, "-") == [[2]]


def test_as_of_and_agent_leave_records_out(fleet: Line) -> None:
    """With --as-of later records are left out; with --agent the records of other agents are."""
    middle = rows(
        fleet, "SELECT strftime(recorded_at, '%Y-%m-%dT%H:%M:%S.%fZ') FROM records WHERE agent_id = 'ann' ORDER BY seq"
    )
    count = rows(fleet, f"SELECT count(*) FROM records WHERE recorded_at <= '{middle[0][0]}'")
    assert rows(fleet, "SELECT count(*) FROM records", "--as-of", str(middle[0][0])) == count
    assert rows(fleet, "SELECT agent_id FROM agents", "--agent", "ann") == [["ann"]]
    assert rows(fleet, "SELECT agent_id FROM agents", "--agent", "o'nobody") == []
    assert "is a seq, and each agent has seqs of its own" in fleet.fails("sql", "SELECT 1", "--as-of", "12")


WRITES = [
    "INSERT INTO agents VALUES (1)",
    "CREATE TABLE t AS SELECT 1",
    "DROP VIEW agents",
    "COPY (SELECT 1) TO '{folder}/x.csv'",
    "ATTACH '{folder}/x.db'",
    "SET memory_limit = '100GB'",
    "PRAGMA threads = 1",
    "INSTALL httpfs",
    "LOAD httpfs",
    "CALL pragma_version()",
    "EXPORT DATABASE '{folder}/x'",
    "SELECT 1; SELECT 2",
    "",
    "WITH x AS (INSERT INTO agents VALUES (1) RETURNING *) SELECT * FROM x",
    "WITH x AS (DELETE FROM lives RETURNING *) SELECT * FROM x",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('{folder}/store/everlog.json')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM glob('/*')",
    "SELECT * FROM duckdb_settings() WHERE set_config('threads', '1')",
    "SELECT nope FROM agents",
    "SELECT (",
    "SELECT sum(tokens) FROM modelcalls",
    "SELECT 'x'::INT",
    "SELECT 9223372036854775807::HUGEINT + sum(seq) FROM records",
]


@pytest.mark.parametrize("query", split(WRITES, 4, label="statements that write", part="commands"))
def test_statements_that_write_are_refused(fleet: Line, tmp_path: Path, query: str) -> None:
    """The error is one clear paragraph with exit code 1, and no file changes."""
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    said = fleet.fails("sql", query.format(folder=tmp_path))
    assert "The query" in said
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.beside_store("a server has a limit of its own")
def test_a_query_beyond_the_memory_limit_is_refused(fleet: Line) -> None:
    """The error says what to do; only a temporary folder is written to, and it is removed afterwards."""
    said = fleet.fails("sql", "SELECT list(r) FROM range(100000000) t(r)", "--memory", "64")
    assert "needs more memory" in said and "--memory" in said
    assert rows(fleet, "SELECT count(*) FROM agents") == [[2]]


def test_bad_usage_is_reported_before_anything_is_read(cli: Line) -> None:
    """Two output formats at once, two queries, and a table into a file exit with code 2."""
    for words in (
        ["SELECT 1", "--file", "x"],
        ["SELECT 1", "--json", "--format", "csv"],
        ["SELECT 1", "--out", "x"],
    ):
        assert cli("sql", *words)[0] == 2


@pytest.mark.beside_store("a server has a store")
def test_a_missing_store_is_named(cli: Line) -> None:
    """A query makes no store."""
    assert "there is no store" in cli.fails("sql", "SELECT 1")


def test_an_answer_that_fails_leaves_no_file(fleet: Line, tmp_path: Path) -> None:
    """The file gets its name only when it is complete."""
    out = tmp_path / "out.csv"
    out.write_text("before")
    query = "SELECT CAST(CASE range WHEN 99999 THEN 'x' ELSE '1' END AS INT) FROM range(100000)"
    fleet.fails("sql", query, "--format", "csv", "--out", str(out))
    assert out.read_text() == "before"
    assert {path.name for path in tmp_path.iterdir()} == {"store", "out.csv"}
    assert "cannot be written" in fleet.fails("sql", "SELECT 1", "--format", "csv", "--out", str(tmp_path / "no" / "x"))


def test_hostile_text_has_no_power_over_a_terminal(cli: Line) -> None:
    """Control characters in names and texts are escaped: in cells, columns and errors."""
    name = "e\x1b[31mvil"
    FileStore.create(cli.root, cli.clock.now, "store").register(name)  # no command creates such an agent
    cli.ok("send", name, "x\x1b]0;y\x07 [bold]z")
    said = cli.ok("sql", 'SELECT agent_id, text AS "a\x1b[1m" FROM messages')
    assert "\x1b" not in said and "\x07" not in said
    assert "[bold]z" in said


def sealed_file(cli: Line, name: str) -> Path:
    store = FileStore(cli.root, cli.clock.now)
    log = store.open(name, "test")
    log.seal(DERIVER)
    log.close()
    return max((cli.root / "log" / store.partition_of(name)).glob("*.parquet"))


@pytest.mark.parametrize("cut", [False, True])
def test_damage_is_named_and_can_be_left_out(fleet: Line, cut: bool) -> None:
    """A damaged file is an error that names it; --skip-damaged answers without the file's partition, and exits 1."""
    path = sealed_file(fleet, "sam")
    data = bytearray(path.read_bytes())
    if cut:
        path.write_bytes(data[: len(data) // 2])
    else:
        data[4 : len(data) // 2] = os.urandom(len(data) // 2 - 4)
        path.write_bytes(data)
    assert path.name in fleet.fails("sql", "SELECT sum(length(payload)), sum(length(text)), max(cause) FROM records")
    code, out, err = fleet("sql", "SELECT agent_id FROM agents", "--skip-damaged", "--json")
    assert code == 1
    assert json.loads(out)["rows"] == [["ann"]]
    assert [left["partition"] for left in json.loads(out)["left_out"]] == [path.parent.name]
    assert "left out" in err
