"""Jobs over HTTP: they continue after their request was answered, and every server can tell how far they are."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.replay import rebuild_check
from everlog.interfaces.http.core.jobs import LOST_US, JobFile, JobFolder
from tests.support.cli.command_line import Script, says
from tests.support.http.served_store import Headers, Served, served


async def ended(server: Served, begun: dict[str, Any], headers: Headers | None = None) -> dict[str, Any]:
    """Wait until the tasks of the server have ended, and return the job."""
    while server.service.tasks:
        await asyncio.wait(set(server.service.tasks))
    return await server.call("GET", f"/jobs/{begun['job']}", status=200, headers=headers)


def test_an_agent_is_verified_by_a_job(tmp_path: Path) -> None:
    """A verification ends with the number of calls that were replayed; a repeat of its request finds the same job, and
    another request with its key is refused.
    """

    async def main() -> None:
        async with served(tmp_path, Script([says("Ahoy")])) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            await server.call("POST", "/agents/sam/messages", {"text": "Hello"}, status=200)
            key = {"Idempotency-Key": "proof"}
            begun = await server.call("POST", "/agents/sam/verify", {}, headers=key, status=202)
            again = await server.call("POST", "/agents/sam/verify", {}, headers=key, status=202)
            assert again["job"] == begun["job"]
            await server.call("POST", "/agents/sam/verify", {"sample": 1}, headers=key, status=422)
            job = await ended(server, begun)
            assert (job["state"], job["result"]["faults"], job["result"]["calls"]["all"]) == ("done", [], 1)
            assert [one["job"] for one in (await server.call("GET", "/jobs", status=200))["jobs"]] == [begun["job"]]
            await server.call("POST", "/agents/bob/verify", {}, status=404)

    asyncio.run(main())


def test_inputs_are_rerun_in_a_fork_and_compared(tmp_path: Path) -> None:
    """A rerun makes a fork with other answers; the result and a later comparison have both; a failure is told."""

    async def main() -> None:
        async with served(tmp_path, Script([says("Ahoy"), says("Avast")])) as server:
            key = server.key(tenant="acme")
            await server.call("POST", "/agents", {"name": "sam"}, headers=key, status=201)
            run = await server.call("POST", "/agents/sam/messages", {"text": "Hello"}, headers=key, status=200)
            body = {"fork": "sam-2", "at": run["first_seq"]}
            begun = await server.call("POST", "/agents/sam/reruns", body, headers=key, status=202)
            job = await ended(server, begun, key)
            assert (job["state"], job["result"]["agent"], job["result"]["fork"]) == ("done", "sam", "sam-2"), job
            assert job["result"]["turns"][0]["now"]["answers"] == ["Avast"]
            assert job["progress"] == {"done": 1, "total": 0}
            compared = await server.call("GET", "/agents/sam/compare?fork=sam-2", headers=key, status=200)
            assert compared["comparison"]["turns"] == job["result"]["turns"]
            failed = await ended(
                server, await server.call("POST", "/agents/sam/reruns", body, headers=key, status=202), key
            )
            assert (failed["state"], failed["problem"]["code"]) == ("failed", "bad-input")
            assert "acme" not in failed["problem"]["message"], "a tenant reads its own names"
            await server.call("GET", f"/jobs/{begun['job']}", headers=server.key(tenant="beta"), status=404)
            assert (await server.call("GET", "/jobs", headers=server.key(tenant="beta"), status=200))["jobs"] == []

    asyncio.run(main())


def test_records_are_planned_and_erased_by_a_job(tmp_path: Path) -> None:
    """A plan changes nothing; the erasure takes what the plan said, and nothing of another agent."""

    async def main() -> None:
        async with served(tmp_path, Script([says("Aye"), says("Aye")])) as server:
            key = server.key(tenant="acme")
            for name in ("sam", "bob"):
                await server.call("POST", "/agents", {"name": name}, headers=key, status=201)
                await server.call(
                    "POST", f"/agents/{name}/messages", {"text": "My pin is 1234"}, headers=key, status=200
                )
            wanted = {"match": ["1234"]}
            plan = await server.call("POST", "/agents/sam/erasures/plan", wanted, headers=key, status=200)
            assert {(one["stream"], one["type"]) for one in plan["records"]} >= {("sam", "user_message")}
            begun = await server.call("POST", "/agents/sam/erasures", wanted, headers=key, status=202)
            job = await ended(server, begun, key)
            assert (job["state"], job["agent"], job["result"]["erased"]) == ("done", "sam", len(plan["records"])), job
            sam, bob = [
                await server.call("GET", f"/agents/{name}/records", headers=key, status=200) for name in ("sam", "bob")
            ]
            assert "1234" not in str(sam)
            assert "1234" in str(bob)
            await server.call("POST", "/agents/sam/erasures", {}, headers=key, status=400)
            await server.call("POST", "/agents/eve/erasures", wanted, headers=key, status=404)
            await server.call("POST", "/blocks/team/erasures", wanted, headers=key, status=404)
            await server.call("POST", "/blocks", {"block": "team", "value": "pin 99"}, headers=key, status=201)
            begun = await server.call("POST", "/blocks/team/erasures", {"match": ["99"]}, headers=key, status=202)
            assert (await ended(server, begun, key))["result"]["erased"] == 1

    asyncio.run(main())


def test_a_job_whose_server_died_is_lost(tmp_path: Path) -> None:
    """A job that gives no sign of life is lost, for every server in front of the store; one that gives them runs."""

    async def main() -> None:
        async with served(tmp_path) as server:
            ports, folder = server.service.ports, JobFolder(tmp_path)
            now = ports.clock.now()
            for state, beat in (("lost", now - LOST_US - 1), ("running", now)):
                job = JobFile(
                    id=ports.ids.new(now),
                    kind="verify",
                    tenant="",
                    key="",
                    request="",
                    agent="sam",
                    started=beat,
                    beat=beat,
                )
                folder.begin(job)
                assert (await server.call("GET", f"/jobs/{job.id}", status=200))["state"] == state
            for job in ("nothing", "../keys", ports.ids.new(now)):
                await server.call("GET", f"/jobs/{job.replace('/', '%2F')}", status=404)

    asyncio.run(main())


def test_an_erasure_forgets_the_results_of_jobs(tmp_path: Path) -> None:
    """A rerun tells what was said; after an erasure no file of a job holds it, the job is still known as done, and the
    same request is still a repeat.
    """

    async def main() -> None:
        async with served(tmp_path, Script([says("Ahoy, Zebulon"), says("Zebulon, again")])) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            run = await server.call("POST", "/agents/sam/messages", {"text": "I am Zebulon"}, status=200)
            body, key = {"fork": "sue", "at": run["first_seq"]}, {"Idempotency-Key": "rerun"}
            job = await ended(server, await server.call("POST", "/agents/sam/reruns", body, headers=key, status=202))
            assert "Zebulon" in str(job["result"])
            erasure = {"match": ["Zebulon"], "derived": True}
            erased = await ended(server, await server.call("POST", "/agents/sam/erasures", erasure, status=202))
            assert erased["result"]["erased"] > 0
            assert [path for path in (tmp_path / "jobs").iterdir() if b"Zebulon" in path.read_bytes()] == []
            now = await server.call("GET", f"/jobs/{job['job']}", status=200)
            assert (now["state"], now["result"]) == ("done", None)
            again = await server.call("POST", "/agents/sam/reruns", body, headers=key, status=202)
            assert again["job"] == job["job"]

    asyncio.run(main())


def test_a_server_that_stops_says_that_its_jobs_are_lost(tmp_path: Path) -> None:
    """A job that runs when its server stops is lost at once, and the next server says so."""

    class Stuck(Script):
        async def ask(self, request: bytes, **options: object):
            await asyncio.Event().wait()

    async def main() -> None:
        async with served(tmp_path, Script([says("Ahoy")])) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            run = await server.call("POST", "/agents/sam/messages", {"text": "Hello"}, status=200)
        async with served(tmp_path, Stuck([])) as server:
            body = {"fork": "sam-2", "at": run["first_seq"]}
            begun = await server.call("POST", "/agents/sam/reruns", body, status=202)
            assert begun["state"] == "running"
        async with served(tmp_path) as server:
            assert (await server.call("GET", f"/jobs/{begun['job']}", status=200))["state"] == "lost"

    asyncio.run(main())


def test_a_bug_in_a_job_is_reported_with_its_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that meets a bug has failed for every caller, and the exception itself reaches the server's log."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(rebuild_check, "verify", broken)

    async def main() -> None:
        reported: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        async with served(tmp_path, Script([says("Ahoy")])) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            job = await ended(server, await server.call("POST", "/agents/sam/verify", {}, status=202))
            assert (job["state"], job["problem"]["code"]) == ("failed", "bug")
        assert [type(context["exception"]) for context in reported] == [ZeroDivisionError]

    asyncio.run(main())
