"""`everlog load --sql`: each row of a query is a document."""

from pathlib import Path

import duckdb
import pytest

from tests.interfaces.documents.test_document_commands import held
from tests.support.cli.command_line import Line


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """Return the same three rows as Parquet, CSV, JSON lines and a database."""
    with duckdb.connect(str(tmp_path / "notes.duckdb")) as db:
        db.execute("CREATE TABLE notes (id INTEGER, title TEXT, text TEXT)")
        db.execute("INSERT INTO notes VALUES (1, 'Fog', 'Fog came.'), (2, 'Tide', 'The tide turns.')")
        db.execute("INSERT INTO notes VALUES (3, 'Wind', 'The wind drops.')")
        db.execute(f"COPY notes TO '{tmp_path}/notes.parquet'")
        db.execute(f"COPY notes TO '{tmp_path}/notes.csv'")
        db.execute(f"COPY notes TO '{tmp_path}/notes.json'")
    return tmp_path


@pytest.mark.parametrize("kind", ["parquet", "csv", "json", "duckdb"])
def test_rows_of_every_kind_of_table_become_documents(kind: str, cli: Line, tables: Path) -> None:
    """A document is named by the row's id, and its text is the column `text`; loading again changes nothing."""
    table = "notes.notes" if kind == "duckdb" else f"'{tables}/notes.{kind}'"
    path = [str(tables / "notes.duckdb")] if kind == "duckdb" else []
    argv = ["load", "sam", *path, "--source", "notes", "--sql", f"SELECT * FROM {table} ORDER BY id"]
    assert cli.json(*argv)["new"] == 3
    assert held(cli, "notes") == {"1": "Fog came.", "2": "The tide turns.", "3": "The wind drops."}
    assert [row["title"] for row in cli.json("sources", "--source", "notes")] == ["Fog", "Tide", "Wind"]
    assert cli.json(*argv)["unchanged"] == 3
    argv[-1] = f"SELECT * FROM {table} WHERE id < 3"
    assert cli.json(*argv)["vanished"] == ["3"]
    assert cli.json(*argv, "--prune")["removed"] == 1
    assert (tables / "notes.duckdb").exists()


def test_a_row_without_a_text_is_all_its_columns(cli: Line, tables: Path) -> None:
    """The name is the column `document`, else `id`, else `title`, else the row's number; without `text` each column is
    one line.
    """
    cli.ok("load", "sam", "--sql", f"SELECT title AS wind, id * 2 AS speed FROM '{tables}/notes.csv' ORDER BY id")
    assert held(cli, "sam")["row 2"] == "wind: Tide\nspeed: 4"
    cli.ok(
        "load", "sam", "--source", "b", "--sql", f"SELECT title AS document, id, 7 AS text FROM '{tables}/notes.csv'"
    )
    assert held(cli, "b") == {"Fog": "7", "Tide": "7", "Wind": "7"}


def test_a_row_that_is_no_document_is_named_and_the_rest_continues(cli: Line) -> None:
    query = "SELECT * FROM (VALUES (1, 'a'), (2, NULL), (1, 'b'), (4, ' '), (5, 'c')) t(id, text)"
    code, out, err = cli("load", "sam", "--sql", query)
    assert code == 1
    assert err.splitlines() == [
        "everlog: 2: row 2 has no text.",
        "everlog: 1: another document of this load has the same name; load it into another source.",
        "everlog: 4: it has no text.",
    ]
    assert out == "Loaded 2 documents (2 new) into source sam; 3 could not be read.\n"
    assert held(cli, "sam") == {"1": "a", "5": "c"}
    assert "is bytes; decode it" in cli.fails("load", "sam", "--sql", "SELECT 'x'::BLOB AS text")


@pytest.mark.beside_store("a server has a store")
@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELEC 1", "The query failed: Parser Error: syntax error"),
        ("", "The query has to be one SELECT; this is empty"),
        ("SELECT 1; SELECT 2", "The query has to be one SELECT; this is SELECT and SELECT"),
        ("COPY (SELECT 1) TO 'out.csv'", "this is COPY"),
        ("ATTACH 'x.db'", "this is ATTACH"),
        ("INSTALL httpfs", "this is LOAD"),
        ("SELECT * FROM nowhere", "Table with name nowhere does not exist!"),
        ("SELECT * FROM 'nowhere.parquet'", "No files found"),
        ("SELECT * FROM 'https://127.0.0.1/x.parquet'", "requires the extension httpfs"),
    ],
)
def test_a_query_that_cannot_be_is_refused_before_anything_is_made(query, said, cli: Line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said in cli.fails("load", "sam", "--sql", query)
    assert not list(tmp_path.iterdir())


def test_a_query_that_fails_in_its_middle_keeps_what_came_before(cli: Line) -> None:
    """A row that cannot be computed ends the load with its reason; an incomplete query prunes nothing."""
    cli.ok("load", "sam", "--sql", "SELECT 'old' AS id, 'fog' AS text")
    bad = "SELECT i AS id, CASE WHEN i < 5000 THEN 'x' ELSE error('the well is dry') END AS text FROM range(5001) t(i)"
    assert "the well is dry" in cli.fails("load", "sam", "--prune", "--sql", bad)
    assert "old" in held(cli, "sam")


def test_a_database_that_cannot_be_opened_is_named(cli: Line, tables: Path) -> None:
    """A missing file, a file that is no database, and two databases of one name are errors; a database that is read is
    never changed.
    """
    (tables / "fake.duckdb").write_text("hello")
    for paths, said in (
        (["/nowhere.duckdb"], "With --sql each PATH is a DuckDB database"),
        ([str(tables / "fake.duckdb")], "cannot be opened as a database of DuckDB"),
        ([str(tables / "notes.duckdb")] * 2, "another database is named 'notes' too"),
    ):
        assert said in cli.fails("load", "sam", *paths, "--sql", "SELECT 1")
