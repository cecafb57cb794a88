"""The SQL page: a link is a query, which can only read, and a tenant's query reads the tenant."""

import asyncio
from pathlib import Path

from everlog.interfaces.http.core.service import HttpLimits, HttpOptions
from tests.interfaces.console.test_every_page import cookie, script
from tests.support.http.parsed_page import ParsedPage
from tests.support.http.served_store import served


def test_a_link_is_a_query(tmp_path: Path) -> None:
    """The page shows the views, the rows of the query, nulls and long texts; the exports have all rows as files."""

    async def main() -> None:
        async with served(tmp_path, script()) as server:
            await (await server.system.agent("sam")).ask("<script>top.x=1</script>")
            empty = ParsedPage((await server.client.get("/console/sql")).text)
            assert "memory_history" in empty.text and "Examples" in empty.text
            for href in empty.values("a", "href"):
                if "/sql?q=" in href:
                    example = await server.client.get(href)
                    assert "alert" not in example.text, (href, example.text)
            query = "SELECT text, NULL AS none FROM messages WHERE role = 'user'"
            page = await server.client.get("/console/sql", params={"q": query})
            parsed = ParsedPage(page.text)
            parsed.check()
            assert "<script>top.x=1</script>" in parsed.text and "1 row" in parsed.text and "null" in parsed.text
            many = await server.client.get("/console/sql", params={"q": "SELECT * FROM range(501)"})
            assert "The first 500 rows" in many.text
            export = await server.client.get("/console/sql/export", params={"q": "SELECT * FROM range(501)"})
            assert export.headers["content-disposition"].startswith("attachment; filename=")
            assert len(export.text.splitlines()) == 502
            assert (await server.client.get("/console/sql/export?q=FROM agents&format=exe")).status_code == 400

    asyncio.run(main())


def test_a_faulty_query_is_explained_and_kept(tmp_path: Path) -> None:
    """A query that cannot be answered, or that would write, is shown again with the reason and its place."""

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.system.agent("sam")
            for query in (
                "SELECT nmae FROM agents",
                "SELECT 1; SELECT 2",
                "DROP VIEW agents",
                "COPY agents TO 'x.csv'",
            ):
                page = await server.client.get("/console/sql", params={"q": query})
                assert page.status_code == 200 and 'role="alert"' in page.text, query
                assert query in ParsedPage(page.text).text
            page = await server.client.get("/console/sql", params={"q": "SELECT nmae FROM agents"})
            assert "^" in page.text

    asyncio.run(main())


def test_a_query_from_another_site_waits(tmp_path: Path) -> None:
    """A link from another site shows its query and does not run it; its export is refused."""

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.system.agent("sam")
            elsewhere = {"Sec-Fetch-Site": "cross-site"}
            params = {"q": "SELECT 6 * 7 AS answer"}
            held = await server.client.get("/console/sql", params=params, headers=elsewhere)
            assert "was not run" in held.text and ">42<" not in held.text and "SELECT 6 * 7" in held.text
            run = await server.client.get("/console/sql", params=params, headers={"Sec-Fetch-Site": "same-origin"})
            assert ">42<" in run.text
            export = await server.client.get("/console/sql/export", params=params, headers=elsewhere)
            assert export.status_code == 403

    asyncio.run(main())


def test_a_tenant_asks_about_its_own(tmp_path: Path) -> None:
    """The query of a tenant finds the tenant's agents alone."""

    async def main() -> None:
        async with served(tmp_path) as server:
            for tenant in ("acme", "beta"):
                await server.call("POST", "/agents", {"name": tenant[0]}, headers=server.key(tenant=tenant), status=201)
            mine = cookie(server, server.key("read", "acme"))
            page = await server.client.get("/console/sql?q=SELECT agent_id FROM agents", headers=mine)
            assert "<bdi>a</bdi>" in page.text and "<bdi>b</bdi>" not in page.text and "1 row" in page.text

    asyncio.run(main())


def test_an_answer_with_labels_and_numbers_has_a_chart(tmp_path: Path) -> None:
    """The chart has a bar for each row that is not zero; other columns can be chosen; an answer without two columns,
    with negative numbers or with too many rows has none.
    """

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.system.agent("sam")

            async def page(query: str, **more: str) -> ParsedPage:
                parsed = ParsedPage((await server.client.get("/console/sql", params={"q": query, **more})).text)
                parsed.check()
                return parsed

            two = "SELECT 'day ' || i AS day, i AS n, 10 - i AS m FROM range(5) t(i)"
            first = await page(two)
            assert "n by day" in first.text and len(first.values("rect", "x")) == 4
            other = await page(two, value="m", label="n")
            assert "m by n" in other.text and len(other.values("rect", "x")) == 5
            for query in (
                "SELECT 1 AS n",
                "SELECT i AS n FROM range(5) t(i)",
                "SELECT 'x' AS a, -i AS n FROM range(5) t(i)",
                "SELECT 'x' AS a, i AS n FROM range(200) t(i)",
                "SELECT 'x' AS a, 'y' AS b FROM range(5)",
            ):
                assert not (await page(query)).values("rect", "x"), query

    asyncio.run(main())


def test_a_query_that_nobody_waits_for_is_stopped(tmp_path: Path) -> None:
    """A browser that closes the connection ends its query: the next one has the engine at once."""
    endless = "SELECT count(*) FROM range(10000000000) a(i), range(1000) b(j) WHERE i % 7 = j"

    limits = HttpLimits(queries_max=1, query_s=3600)

    async def main() -> None:
        async with served(tmp_path, options=HttpOptions(limits=limits)) as server:
            await server.system.agent("sam")
            asked = asyncio.create_task(server.client.get("/console/sql", params={"q": endless}))
            while not server.service.queries.locked():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            asked.cancel()
            await asyncio.wait((asked,))
            again = await server.client.get("/console/sql", params={"q": "SELECT 42 AS n"})
            assert "42" in again.text

    asyncio.run(main())
