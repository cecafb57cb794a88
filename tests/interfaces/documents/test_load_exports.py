"""`everlog load` of exported tables: each row is a document, and vectors are left out."""

import sqlite3
from pathlib import Path

import duckdb
import lancedb
import pyarrow as pa
import pytest

from tests.interfaces.documents.test_document_commands import held
from tests.support.cli.command_line import Line

ROWS = pa.table(
    {
        "id": ["a", "b"],
        "content": ["Fog came.", "The tide turns."],
        "vector": pa.array([[0.5, 1.5], [0.25, 0.75]], pa.list_(pa.float32(), 2)),
    }
)
CHROMA = """
CREATE TABLE collections (id TEXT, name TEXT);
CREATE TABLE segments (id TEXT, collection TEXT);
CREATE TABLE embeddings (id INTEGER PRIMARY KEY, segment_id TEXT, embedding_id TEXT);
CREATE TABLE embedding_metadata (id INTEGER, key TEXT, string_value TEXT);
INSERT INTO collections VALUES ('c', 'sea');
INSERT INTO segments VALUES ('s', 'c');
INSERT INTO embeddings VALUES (1, 's', 'a'), (2, 's', 'b'), (3, 's', 'vector-only');
INSERT INTO embedding_metadata VALUES (1, 'chroma:document', 'Fog came.'), (2, 'chroma:document', 'The tide turns.');
INSERT INTO embedding_metadata VALUES (2, 'author', 'Ann');
"""


@pytest.fixture
def exports(tmp_path: Path) -> Path:
    """Return a folder with the same two rows as each kind of export."""
    with duckdb.connect() as db:
        db.register("rows", ROWS)
        db.execute(f"COPY rows TO '{tmp_path}/notes.parquet'")
    with pa.OSFile(str(tmp_path / "notes.arrow"), "wb") as sink, pa.ipc.new_file(sink, ROWS.schema) as writer:
        writer.write_table(ROWS)
    with pa.OSFile(str(tmp_path / "notes.ipc"), "wb") as sink, pa.ipc.new_stream(sink, ROWS.schema) as writer:
        writer.write_table(ROWS)
    lancedb.connect(str(tmp_path)).create_table("notes", ROWS)
    with sqlite3.connect(tmp_path / "chroma.sqlite3") as chroma:
        chroma.executescript(CHROMA)
    chroma.close()
    return tmp_path


@pytest.mark.parametrize("kind", ["parquet", "arrow", "ipc", "lance"])
def test_rows_of_every_kind_of_export_become_documents(kind: str, cli: Line, exports: Path) -> None:
    """A document is named FILE/ID, its text is the column of text, and loading again changes nothing."""
    argv = ["load", "sam", str(exports / f"notes.{kind}"), "--source", "notes"]
    assert cli.json(*argv)["new"] == 2
    assert held(cli, "notes") == {f"notes.{kind}/a": "Fog came.", f"notes.{kind}/b": "The tide turns."}
    assert cli.json(*argv)["unchanged"] == 2


def test_chromas_database_is_read_by_collection(cli: Line, exports: Path) -> None:
    """The documents of a Chroma database have their collection in the name; a vector without a text is reported."""
    code, _, err = cli("load", "sam", str(exports / "chroma.sqlite3"), "--source", "sea")
    assert code == 1 and "chroma.sqlite3/sea/vector-only: row 3 has no text." in err
    assert held(cli, "sea") == {"chroma.sqlite3/sea/a": "Fog came.", "chroma.sqlite3/sea/b": "The tide turns."}


def test_a_row_without_a_column_of_text_is_its_other_columns(cli: Line, tmp_path: Path) -> None:
    """Without a known column of text, each column but the id and the vector is a line."""
    with duckdb.connect() as db:
        db.execute(f"COPY (SELECT 7 AS id, 'Fog' AS what, [0.5, 1.0]::FLOAT[2] AS v) TO '{tmp_path}/t.parquet'")
    cli.ok("load", "sam", str(tmp_path / "t.parquet"))
    assert held(cli, "sam") == {"t.parquet/7": "what: Fog"}


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.sqlite3", "t.lance"])
def test_a_file_that_is_no_export_is_reported(name: str, cli: Line, tmp_path: Path) -> None:
    """A damaged export is one unreadable document, and the others are loaded."""
    (tmp_path / name).write_text("no table")
    (tmp_path / "a.txt").write_text("Fog came.")
    code, _, err = cli("load", "sam", str(tmp_path / name), str(tmp_path / "a.txt"))
    assert code == 1 and f"{name}: it cannot be read as " in err
    assert held(cli, "sam") == {"a.txt": "Fog came."}
    assert "there is no such file" in cli.fails("load", "sam", str(tmp_path / "gone.parquet"))
