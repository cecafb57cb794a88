"""SQL over HTTP: answered in each format, read only, within limits, and blind to every other tenant."""

import asyncio
from pathlib import Path

import pyarrow as pa

from everlog.actors.memory.fleet_sql import fleet_views
from everlog.events import BadInput
from everlog.interfaces.http.core.service import HttpLimits, HttpOptions
from everlog.projections import DERIVER
from everlog.projections.fleet_views import NAMED_VIEWS
from everlog.store import FileStore
from tests.support.cli.command_line import Script, says
from tests.support.http.served_store import Headers, Served, served

SECRET = "0xSECRET"
"""Word that only the other tenant's agents, sources and blocks have: in names, texts and payloads."""


async def sql(server: Served, query: str, status: int = 200, headers: Headers | None = None, **more: object) -> dict:
    """Run a query and return the decoded answer."""
    return await server.call("POST", "/sql", {"query": query, **more}, status=status, headers=headers)


async def raw(server: Served, query: str, form: str, headers: Headers | None = None) -> bytes:
    """Run a query and return the bytes of the answer."""
    answer = await server.client.post("/api/v1/sql", json={"query": query, "format": form}, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.content


def test_a_query_is_answered_in_each_format(tmp_path: Path) -> None:
    """The same rows come as JSON, as CSV and as a stream of Arrow; parameters stand for texts; a past time has less."""

    async def main() -> None:
        async with served(tmp_path, Script([says("Ahoy")])) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            await server.call("POST", "/agents/sam/messages", {"text": "Hello"}, status=200)
            query = "SELECT role, text FROM messages ORDER BY seq"
            answer = await sql(server, query)
            assert answer["columns"] == [{"name": "role", "type": "string"}, {"name": "text", "type": "string"}]
            assert ["user", "Hello"] in answer["rows"]
            assert ["assistant", "Ahoy"] in answer["rows"]
            assert answer["records"] == sum(part["records"] for part in answer["partitions"]) > 2
            csv = (await raw(server, query, "csv")).decode()
            assert '"user","Hello"' in csv
            with pa.ipc.open_stream(await raw(server, query, "arrow")) as reader:
                assert reader.read_all().num_rows == len(answer["rows"])
            chosen = await sql(server, "SELECT text FROM messages WHERE text = $said", params={"said": "Hello"})
            assert chosen["rows"] == [["Hello"]]
            before = await sql(server, "SELECT count(*) FROM records", as_of="2020-01-01T00:00:00Z")
            assert before["rows"] == [[0]]

    asyncio.run(main())


def test_a_query_that_would_write_or_read_files_is_refused(tmp_path: Path) -> None:
    """Statements that are no SELECT, and functions that open files, are refused; nothing is written or shown."""

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            for query in (
                "CREATE TABLE t (a INT)", "COPY (SELECT 1) TO '/tmp/x.csv'", "ATTACH '/tmp/x.db'", "SELECT 1; SELECT 2",
                "INSTALL httpfs", "SET memory_limit = '1TB'", "SELECT nothing FROM records", "",
                "FROM read_text('/etc/passwd')", "FROM glob('/etc/*')", "FROM '/etc/passwd'",
            ):  # fmt: skip
                problem = await sql(server, query, 400)
                assert problem["code"] == "bad-input", query

    asyncio.run(main())


def test_a_query_has_limits_of_time_and_of_the_size_of_its_answer(tmp_path: Path) -> None:
    """A query that takes too long, or whose answer is too large, is refused, and the next one is answered."""
    limits = HttpLimits(query_s=0.5, answer_bytes_max=1000, query_memory_mb=64)

    async def main() -> None:
        async with served(tmp_path, options=HttpOptions(limits=limits)) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            slow = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE a.range % 7 = b.range % 11"
            assert (await sql(server, slow, 400))["code"] == "query-too-slow"
            assert (await sql(server, "FROM range(100000)", 400))["code"] == "bad-input"
            assert (await sql(server, "SELECT 1"))["rows"] == [[1]]

    asyncio.run(main())


def test_a_search_of_all_agents_has_a_limit_of_time(tmp_path: Path) -> None:
    """A search of all agents that takes too long is refused with advice, and the agents are as before."""

    async def main() -> None:
        async with served(tmp_path, options=HttpOptions(limits=HttpLimits(query_s=0))) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            problem = await server.call("GET", "/search?query=boat", status=400)
            assert problem["code"] == "query-too-slow"
            assert "took longer than 0 seconds" in problem["message"]
            found = await server.call("GET", "/agents/sam/search?query=boat")
            assert found["results"] == []

    asyncio.run(main())


ATTEMPTS = (
    "FROM {view}", "SELECT * FROM (FROM {view})", "WITH x AS (FROM {view}) FROM x", "FROM query('FROM {view}')",
    "FROM query_table('{view}')", "SELECT count(*), string_agg(v::VARCHAR) FROM {view} v",
)  # fmt: skip
INSIDE = (
    "fresh", "everything", "rare", "lived", "lives", "forks", "lineage", "given_names", "read_through",
    "current_records", "arriving",
)  # fmt: skip
"""Tables and views from which the named views are made."""
CATALOGUE = (
    "duckdb_tables()", "duckdb_views()", "duckdb_columns()", "duckdb_databases()", "duckdb_schemas()",
    "duckdb_settings()", "duckdb_secrets()", "duckdb_temporary_files()", "duckdb_memory()", "duckdb_logs()",
    "duckdb_variables()", "duckdb_constraints()", "duckdb_indexes()", "duckdb_prepared_statements()",
    "information_schema.tables", "pg_catalog.pg_class", "pragma_storage_info('fresh')", "pragma_table_info('fresh')",
    "pragma_database_size()", "which_secret('x', 's3')", "repo_list()",
)  # fmt: skip
READERS = (
    "read_parquet", "parquet_scan", "parquet_metadata", "parquet_file_metadata", "parquet_kv_metadata",
    "parquet_schema", "read_text", "read_blob", "read_csv", "read_csv_auto", "read_json", "read_json_objects",
    "read_ndjson", "sniff_csv", "glob", "parquet_bloom_probe",
)  # fmt: skip


def test_no_query_of_a_tenant_returns_a_byte_of_another(tmp_path: Path) -> None:
    """No answer and no error has a word of another tenant, sealed or not, forked or renamed: of views, of the tables
    inside of them, of the catalogue, of readers of files and of open files of the process.
    """

    async def main() -> None:
        async with served(tmp_path, Script([says(f"It is {SECRET}"), says("Aye")])) as server:
            beta, acme = server.key(tenant="beta"), server.key(tenant="acme")
            await _fill(server, beta, SECRET)
            await _fill(server, acme, "mine")
            for query in ("FROM records", "FROM fresh", "SELECT nothing", "FROM glob('/proc/self/fd/*')"):
                answer = await server.client.post("/api/v1/sql", json={"query": query}, headers=acme)
                assert answer.status_code in {200, 400}, (query, answer.text)
                assert SECRET not in answer.text, query
                assert "beta~" not in answer.text, query
            for name in await server.system.agents():
                await server.system.unload(name)
            await asyncio.to_thread(_seal, server.system.store)
            # The rest in one engine, as the route opens it: to make the views takes longer than to ask them.
            answered = await asyncio.to_thread(_attempts, server.system.store, tmp_path)
            assert answered > len(NAMED_VIEWS), "the views themselves were answered"

    asyncio.run(main())


def test_a_tenant_sees_its_own_agents_sources_and_blocks_under_its_own_names(tmp_path: Path) -> None:
    """A tenant's query has the records of its agents, forks, sources and shared blocks under the names it says, and
    those of a fork's parent too; the operator's has all, under the names of the store.
    """

    async def main() -> None:
        async with served(tmp_path, Script([says("Aye"), says("Aye")])) as server:
            beta, acme = server.key(tenant="beta"), server.key(tenant="acme")
            await _fill(server, beta, "theirs")
            await _fill(server, acme, "mine")
            names = await sql(server, "SELECT DISTINCT agent_id FROM records ORDER BY 1", headers=acme)
            assert [row[0] for row in names["rows"]] == ["block:mine", "mine", "mine-fork", "source:mine"]
            agents = await sql(server, "SELECT agent_id, name, parent FROM agents ORDER BY 1", headers=acme)
            assert agents["rows"] == [["mine", "mine-new", None], ["mine-fork", "mine-fork", "mine"]]
            said = "SELECT text FROM memories WHERE agent_id = 'mine-fork' AND role = 'user'"
            mine = await sql(server, said, headers=acme)
            assert mine["rows"] == [["Hello mine"]]
            assert (mine["partitions"], mine["left_out"]) == ([], [])
            await sql(server, said, 403, headers=acme, skip_damaged=True)
            one = await sql(server, "SELECT DISTINCT agent_id FROM records", headers=acme, agent="mine-new")
            assert one["rows"] == [["mine"]]
            every = await sql(server, "SELECT DISTINCT agent_id FROM agents ORDER BY 1", headers=server.key())
            assert [row[0] for row in every["rows"]] == [
                "acme~mine", "acme~mine-fork", "beta~theirs", "beta~theirs-fork",
            ]  # fmt: skip
            payloads = await sql(server, "SELECT string_agg(payload, '') FROM records", headers=acme)
            assert "acme~" not in payloads["rows"][0][0]

    asyncio.run(main())


def _seal(store: FileStore) -> None:
    """Seal every log, so that the words are in files that a query could read."""
    for partition in store.partitions():
        log = store.open_partition(partition, "test")
        try:
            log.seal(DERIVER)
        finally:
            log.close()


def _attempts(store: FileStore, root: Path) -> int:
    """Ask everything that could tell a word of another tenant. Return the number of answers."""
    with fleet_views(store) as (views, position):
        assert position.paths, "there are sealed files"
        assert SECRET in str(views.table("FROM everything").to_pylist()), "the operator's views have the word"
    kinds = {path.suffix or path.name: str(path) for path in root.rglob("*") if path.is_file()}
    files = sorted(kinds.values())
    patterns = [f"{root}/**", "/proc/self/fd/*", "/proc/self/environ", "*"]
    queries = [shape.format(view=view) for view in (*NAMED_VIEWS, *INSIDE) for shape in ATTEMPTS]
    queries += [f"FROM {name}" for name in CATALOGUE]
    queries += [f"FROM {reader}('{path}')" for reader in READERS for path in (*files, *patterns)]
    queries += [f"FROM read_blob('/proc/self/fd/{number}')" for number in range(3, 60)]
    queries += [f"FROM '{path}'" for path in files]
    queries += ["SHOW TABLES", "SHOW ALL TABLES", "DESCRIBE records", "SELECT current_setting('temp_directory')"]
    answered = 0
    with fleet_views(store, tenant="acme~") as (views, _):
        for query in queries:
            try:
                said, answered = str(views.table(query).to_pylist()), answered + 1
            except BadInput as error:
                said = str(error)
            assert SECRET not in said.replace(query, ""), query
            assert "beta~" not in said.replace(query, ""), query
    return answered


async def _fill(server: Served, key: Headers, word: str) -> None:
    """Create an agent with a message, a fork, another name, a source and a shared block, all with a word."""
    await server.call("POST", "/agents", {"name": word, "placement": "dedicated"}, headers=key, status=201)
    await server.call("POST", f"/agents/{word}/messages", {"text": f"Hello {word}"}, headers=key, status=200)
    await server.call("POST", f"/agents/{word}/archive", {"text": f"A {word}."}, headers=key, status=201)
    await server.call("POST", f"/agents/{word}/forks", {"name": f"{word}-fork"}, headers=key, status=201)
    await server.call("POST", "/blocks", {"block": word, "value": word}, headers=key, status=201)
    await server.call("PUT", f"/agents/{word}/shared/{word}", {}, headers=key, status=200)
    body = {"content": word.encode(), "headers": {"Content-Type": "text/plain", **key}}
    assert (await server.client.put(f"/api/v1/sources/{word}/documents/{word}", **body)).status_code == 201
    await server.call("PUT", f"/agents/{word}/sources/{word}", headers=key, status=200)
    await server.call("POST", f"/agents/{word}/rename", {"name": f"{word}-new"}, headers=key, status=200)
