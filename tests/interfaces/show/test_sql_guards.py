"""`everlog sql` writes only the file that a user names, and never into the store."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from everlog.actors.memory.fleet_sql import fleet_views
from everlog.events import BadInput, CorruptLog
from everlog.projections import DERIVER
from everlog.store import FileStore, Snapshot
from tests.support.cli.command_line import Line, Made
from tests.support.seeds import split


def sail(cli: Line) -> None:
    """Make a store whose one log is sealed."""
    cli.ok("send", "sam", "I sail")
    log = FileStore(cli.root, cli.clock.now).open("sam", "test")
    log.seal(DERIVER)
    log.close()


@pytest.fixture
def sealed(cli: Line, made: Made) -> FileStore:
    """A store whose one log is sealed."""
    made.begin(cli, "sql guards", sail)
    return FileStore(cli.root, cli.clock.now)


def content(folder: Path) -> dict[Path, bytes]:
    """Return the content of every file below the folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def held(position: Snapshot) -> str:
    """Return the path under which the sealed file may be opened."""
    (path,) = position.paths
    return path


COPIES = [
    "WITH x AS ({copy}) FROM x",
    "with X as ( {copy} ) select * from X",
    "WITH x AS MATERIALIZED ({copy}) FROM x",
    "WITH x AS ({copy}) SELECT 1",
    "WITH a AS (SELECT 1), x AS ({copy}) FROM a",
    "WITH y AS (WITH x AS ({copy}) FROM x) FROM y",
    "WITH RECURSIVE x AS ({copy}) FROM x",
    "SELECT (WITH x AS ({copy}) FROM x)",
    "SELECT * FROM ({copy})",
    "SELECT * FROM (WITH x AS ({copy}) FROM x)",
    "SELECT * FROM agents WHERE EXISTS (WITH x AS ({copy}) FROM x)",
    "SELECT 1 ORDER BY (WITH x AS ({copy}) FROM x)",
    "SELECT 1 LIMIT (WITH x AS ({copy}) FROM x)",
    "SELECT 1 UNION ALL (WITH x AS ({copy}) FROM x)",
    "FROM agents, LATERAL (WITH x AS ({copy}) FROM x)",
    "PIVOT (WITH x AS ({copy}) FROM x) ON a USING count(*)",
    "DESCRIBE WITH x AS ({copy}) FROM x",
    "SUMMARIZE WITH x AS ({copy}) FROM x",
    "EXPLAIN ANALYZE WITH x AS ({copy}) FROM x",
    "EXPLAIN ANALYZE {copy}",
    "FROM query('{quoted}')",
    "FROM query('WITH x AS ({quoted}) FROM x')",
    "FROM query('WITH x AS (CO' || 'PY {rest}) FROM x')",
    "WITH x AS ({copy}) FROM query('FROM x')",
    "/* a ') */ WITH x AS /* ( */ ({copy}) FROM x -- ')",
    "-- SELECT 1\nWITH x AS ({copy}) FROM x;",
    "WITH x AS ({copy}) FROM x') LIMIT 0 --",
    "WITH x AS ({copy}) FROM x) LIMIT 0 --",
    "SELECT 1; {copy}",
    "SELECT 1; WITH x AS ({copy}) FROM x",
    "; WITH x AS ({copy}) FROM x",
    "CREATE MACRO m() AS TABLE WITH x AS ({copy}) FROM x",
    "PREPARE p AS {copy}",
    "{copy}",
    "FROM enable_logging('QueryLog', storage := 'file', storage_path := '{path}')",
    "FROM enable_profiling(save_location := '{path}')",
]


def copying(query: str, path: str) -> str:
    """Return `query` with a COPY to a path, which writes to the file directly."""
    copy = f"COPY (SELECT 'gone' AS a) TO '{path}' (FORMAT csv, USE_TMP_FILE false)"
    quoted = copy.replace("'", "''")
    return query.format(copy=copy, quoted=quoted, rest=quoted.removeprefix("COPY"), path=path)


@pytest.mark.parametrize("query", split(COPIES, 6, label="copies", part="commands"))
def test_no_query_writes_over_a_sealed_file(sealed: FileStore, query: str) -> None:
    """COPY is refused at every place of a query, also to the one path that may be opened; every byte stays
    unchanged.
    """
    before = content(sealed.root)
    with fleet_views(sealed) as (views, position):
        with pytest.raises(BadInput):
            views.table(copying(query, held(position)))
        assert content(sealed.root) == before
        assert views.table("SELECT count(*) AS n FROM agents").to_pylist() == [{"n": 1}]
    assert content(sealed.root) == before


@pytest.mark.parametrize("query", split(COPIES, 3, label="copies of a command", part="commands"))
def test_no_query_of_a_command_makes_a_file(cli: Line, sealed: FileStore, tmp_path: Path, query: str) -> None:
    """COPY in a query file is refused too, whatever path it writes to."""
    (tmp_path / "q.sql").write_text(copying(query, str(tmp_path / "made.csv")))
    before = content(tmp_path)
    assert "The query" in cli.fails("sql", "--file", str(tmp_path / "q.sql"))
    assert content(tmp_path) == before
    assert sealed.root in tmp_path.iterdir()


READS = [
    "SELECT 1;",
    "SELECT 'it''s' AS a -- ');",
    "FROM agents;",
    "VALUES (1), (2)",
    "DESCRIBE turns",
    "SUMMARIZE turns",
    "SHOW TABLES",
    "WITH x AS (SELECT 1) FROM x",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3) FROM t",
    "FROM query('SELECT 1')",
    "UNPIVOT (SELECT 1 AS a) ON a INTO NAME n VALUE v",
    "SELECT 'COPY (SELECT 1) TO x' AS a",
]


@pytest.mark.parametrize("query", READS)
def test_reading_statements_are_answered(cli: Line, sealed: FileStore, query: str) -> None:
    """No query that only reads is mistaken for one that writes."""
    assert sealed.root.exists()
    assert cli.json("sql", query)["rows"]


def test_a_sealed_file_that_was_written_to_makes_the_answer_void(sealed: FileStore) -> None:
    """A write to the file by any other process is reported at the end of the query, with the name of the file."""
    with pytest.raises(CorruptLog, match=r"\.parquet was written to while it was read"), fleet_views(sealed) as asked:
        views, position = asked
        with Path(held(position)).open("r+b") as file:
            file.seek(0, os.SEEK_END)
            file.write(b"x")
        views.table("SELECT 1")


@pytest.mark.beside_store("a client cannot tell a file in the store of its server")
@pytest.mark.parametrize("asking", [("sql", "SELECT 1", "--format", "csv", "--out"), ("report", "--html")])
@pytest.mark.parametrize("place", ["store/made", "store/everlog.json", "to_store/made", "to_file", "store/log/../made"])
def test_no_answer_is_written_into_the_store(
    cli: Line, sealed: FileStore, tmp_path: Path, asking: tuple[str, ...], place: str
) -> None:
    """The path is refused through links too, whether the file exists or not."""
    (tmp_path / "to_store").symlink_to(sealed.root)
    (tmp_path / "to_file").symlink_to(sealed.root / "everlog.json")
    before = content(tmp_path)
    assert "is inside the store" in cli.fails(*asking, str(tmp_path / place))
    assert content(tmp_path) == before
    assert (tmp_path / "to_file").is_symlink()


@pytest.mark.beside_store("a client cannot tell a file in the store of its server")
def test_a_link_in_the_store_to_elsewhere_is_refused_too(cli: Line, sealed: FileStore, tmp_path: Path) -> None:
    """The link is refused, because the answer would replace it."""
    (sealed.root / "link").symlink_to(tmp_path / "elsewhere")
    assert "is inside the store" in cli.fails("sql", "SELECT 1", "--format", "csv", "--out", str(sealed.root / "link"))
    assert (sealed.root / "link").is_symlink()


def process(cli: Line, tmp_path: Path, *words: str) -> subprocess.Popen[bytes]:
    """Start the command in a process of its own, with a new temporary folder."""
    (tmp_path / "scratch").mkdir()
    return subprocess.Popen(
        [sys.executable, "-m", "everlog.interfaces.cli.main", "--store", str(cli.root), "sql", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path / "scratch")},
    )


def test_sigterm_leaves_no_folder(cli: Line, sealed: FileStore, tmp_path: Path) -> None:
    """SIGTERM during a query ends the process with 143, and its temporary folder is removed."""
    assert sealed.root.exists()
    child = process(cli, tmp_path, "SELECT range FROM range(1000000000000)", "--format", "csv")
    assert child.stdout is not None
    assert child.stdout.readline() == b'"range"\n'
    assert list((tmp_path / "scratch").glob("everlog-sql-*"))
    child.send_signal(signal.SIGTERM)
    child.communicate()
    assert child.returncode == 143
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.long
@pytest.mark.commands
def test_memory_outside_of_the_limit_of_duckdb_is_held_too(cli: Line, sealed: FileStore, tmp_path: Path) -> None:
    """A text of two gigabytes is refused under a limit of 64 MB."""
    assert sealed.root.exists()
    child = process(cli, tmp_path, "SELECT lpad('x', 2000000000, 'y')", "--memory", "64", "--json")
    _, err = child.communicate()
    assert child.returncode == 1
    assert b"needs more memory" in err and b"--memory" in err
    assert list((tmp_path / "scratch").iterdir()) == []


MEASURED = """
import resource, sys
from everlog.interfaces.cli.main import main
code = main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)
sys.exit(code)
"""


def test_rows_are_streamed(cli: Line, sealed: FileStore) -> None:
    """An answer of 200 MB as JSON uses no more memory than a short one, up to the limit."""
    assert sealed.root.exists()
    peaks = []
    for count in (1, 1_000_000):
        query = f"SELECT range, repeat('x', 200) FROM range({count})"
        words = [sys.executable, "-c", MEASURED, "--store", str(cli.root), "sql", query, "--memory", "64", "--json"]
        done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
        peaks.append(int(done.stderr.split()[-1]))
    assert peaks[1] < peaks[0] + 160
