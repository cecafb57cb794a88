"""Measure what HTTP adds: CPU of a message, messages in a second, idle streams, resumed streams, and the start.

Run as `python -m bench.serve`. docs/explanation/benchmarks.md explains the keys of its figures, and `tests/bench`
checks them.

The server is `everlog serve` in a process of its own; the load comes from this process, over keep-alive connections of
its own. The floor of the messages is the same conversation through the Python API, in a process of its own, in turns.
"""

import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import msgspec

from bench.cold_start import FLOOR, process
from bench.support.harness import ROOT, Figure, Line, Noise, among, line, median, noise, options, show, workspace
from everlog.actors.api import open_system
from everlog.actors.ports.agent_constants import SHARD_TEND_S
from everlog.actors.ports.real_clock import RealClock, RealIds
from everlog.events import UserMessage, draft
from everlog.store import FileStore

KEYS = (
    "http_added_cpu_ms", "http_messages_per_s", "idle_stream_kb", "idle_streams_core", "resume_first_byte_ms",
    "serve_start_s",
)  # fmt: skip
GOALS = ("< 1.0", "> 700", "< 40", "< 0.02", "< 30", "< 1.5")
SAID = "Hi, I sail"
CORE_STEP = 0.001
"""Smallest part of a core that the figures tell apart."""
SETTLE_S = 60
"""Seconds in which the server settles after streams were opened."""
SETTLED_CORE = 0.1
"""Part of a core that a settled server uses at most."""
CALM_S = SHARD_TEND_S + 1
"""Seconds without work after which a server is settled: shards look at intervals whether they are at rest, and seal
what they have written when they are.
"""


class Plan(msgspec.Struct, frozen=True):
    """Scale of the measurement. The claim is about the default."""

    agents: int = 200
    messages: int = 10
    """Messages to each agent, in each round."""
    rounds: int = 3
    streams: int = 2000
    idle_s: float = 30.0
    """Seconds of silence, a multiple of those between two keep-alives of a stream."""
    records: int = 100_000
    resumes: int = 20
    starts: int = 5


QUICK = Plan(agents=100, messages=3, rounds=2, streams=500, idle_s=15.0, records=20_000, resumes=10, starts=2)


class Cost(msgspec.Struct, frozen=True):
    """CPU and time of one round of messages."""

    cpu_ms: float
    """CPU of the process with the agents, per message."""
    per_s: float


class Seen(msgspec.Struct, frozen=True):
    """Everything that was measured."""

    noise: Noise
    http: list[Cost]
    api: list[Cost]
    stream_kb: float
    stream_core: float
    first_byte_ms: list[float]
    live_ms: list[float]
    start_s: list[float]
    bare_start_s: list[float]


class Server:
    """An `everlog serve` in a process of its own."""

    def __init__(self, store: Path) -> None:
        begun = time.perf_counter()
        command = [sys.executable, "-m", "everlog.interfaces.cli.main", "--store", str(store), "serve", "--port", "0",
                   "--placement", "shared", "--runtime", "local", "--json"]  # fmt: skip
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        address = json.loads(self.process.stdout.readline())["address"]
        self.start_s = time.perf_counter() - begun
        self.port = int(address.rpartition(":")[2])

    def cpu_s(self) -> float:
        """Return the seconds of CPU that the process has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def rss_kb(self) -> int:
        """Return the memory that the process shares with no other, in kB."""
        lines = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines()
        return sum(int(one.split()[1]) for one in lines if one.startswith(("Private_Clean", "Private_Dirty")))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(60)


class Connection:
    """One keep-alive connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> "Connection":
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    def ask(self, method: str, path: str, body: object = None, below: str = "/api/v1") -> None:
        """Send a request. `below`: beginning of the path."""
        content = b"" if body is None else msgspec.json.encode(body)
        kind = "Content-Type: application/json\r\n" if content else ""
        head = f"{method} {below}{path} HTTP/1.1\r\nHost: localhost\r\n{kind}Content-Length: {len(content)}\r\n\r\n"
        self.writer.write(head.encode() + content)

    async def answer(self) -> bytes:
        """Return the body of an answer. Raises RuntimeError if it is a problem."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        size = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        body = await self.reader.readexactly(size)
        if not head.startswith(b"http/1.1 20"):
            raise RuntimeError(f"the server answered {head[:60]!r} {body[:200]!r}")
        return body


async def talk(port: int, names: Sequence[str], messages: int) -> float:
    """Send messages to all agents at once, each over its own connection. Return the seconds that it took."""

    async def one(name: str) -> None:
        connection = await Connection.open(port)
        for _ in range(messages):
            connection.ask("POST", f"/agents/{name}/messages", {"text": SAID})
            await connection.answer()
        connection.writer.close()

    begun = time.perf_counter()
    await asyncio.gather(*(one(name) for name in names))
    return time.perf_counter() - begun


async def create(port: int, names: Sequence[str]) -> None:
    """Create the agents, and have each answer once."""
    connection = await Connection.open(port)
    for name in names:
        connection.ask("POST", "/agents", {"name": name})
        await connection.answer()
    connection.writer.close()
    await talk(port, names, 1)


async def through_api(store: Path, names: Sequence[str], messages: int, rounds: int) -> list[Cost]:
    """Have the same conversation through the Python API in this process."""
    found = []
    async with open_system(store, runtime="local", placement="shared") as system:
        agents = [await system.agent(name) for name in names]
        await asyncio.gather(*(agent.ask(SAID) for agent in agents))

        async def one(agent: object) -> None:
            for _ in range(messages):
                await agent.ask(SAID)  # type: ignore[attr-defined]

        for _ in range(rounds):
            cpu, begun = time.process_time(), time.perf_counter()
            await asyncio.gather(*(one(agent) for agent in agents))
            count = len(names) * messages
            found.append(Cost((time.process_time() - cpu) / count * 1000, count / (time.perf_counter() - begun)))
    return found


def api_rounds(store: Path, plan: Plan) -> list[Cost]:
    """Run `through_api` in a process of its own."""
    code = (
        "import asyncio, msgspec, sys; from pathlib import Path; from bench import serve;"
        "store, agents, messages, rounds = sys.argv[1:];"
        "names = [f'agent-{n}' for n in range(int(agents))];"
        "found = asyncio.run(serve.through_api(Path(store), names, int(messages), int(rounds)));"
        "print(msgspec.json.encode(found).decode())"
    )
    command = [sys.executable, "-c", code, str(store), str(plan.agents), str(plan.messages), str(plan.rounds)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return msgspec.json.decode(run.stdout.splitlines()[-1], type=list[Cost])


async def idle_streams(server: Server, names: Sequence[str], plan: Plan) -> tuple[float, float]:
    """Open many streams on which nothing happens. Return the kB of each, and the part of a core that all of them
    take.
    """
    await _settled(server)  # after the messages, the server takes memory for what it does beside them
    before = server.rss_kb()
    open_ones = []
    for number in range(plan.streams):
        connection = await Connection.open(server.port)
        connection.ask("GET", f"/agents/{names[number % len(names)]}/stream")
        open_ones.append(connection)
    for connection in open_ones:
        await connection.reader.readuntil(b"\nretry: ")  # the first line of a stream
    await _settled(server)
    kb = (server.rss_kb() - before) / plan.streams
    cpu = server.cpu_s()
    await asyncio.sleep(plan.idle_s)
    core = (server.cpu_s() - cpu) / plan.idle_s
    for connection in open_ones:
        connection.writer.close()
    return kb, core


async def _settled(server: Server) -> None:
    """Wait until the server has done what it was asked for, and what it does at rest."""
    calm = 0
    for _ in range(SETTLE_S):
        cpu = server.cpu_s()
        await asyncio.sleep(1)
        calm = calm + 1 if server.cpu_s() - cpu < SETTLED_CORE else 0
        if calm == CALM_S:
            return


async def resumed(port: int, plan: Plan) -> tuple[list[float], list[float]]:
    """Resume the stream of an agent with a long log near its end, and look at the server's health, in turns. Return the
    milliseconds until the first record, and until the answer about health.
    """
    found: tuple[list[float], list[float]] = ([], [])
    for number in range(plan.resumes):
        for waits, path, sign in (
            (found[0], f"/api/v1/agents/old/stream?after={plan.records - 10 - number}", b"event: record"),
            (found[1], "/livez", b"ok"),
        ):
            connection = await Connection.open(port)
            begun = time.perf_counter()
            connection.ask("GET", path, below="")
            await connection.reader.readuntil(sign)
            waits.append((time.perf_counter() - begun) * 1000)
            connection.writer.close()
    return found


def grow(root: Path, records: int) -> None:
    """Write the log of an agent with many imported messages."""
    clock, ids = RealClock(), RealIds()
    store = FileStore.create(root, clock.now, ids.new(clock.now()), shards=2)
    store.register("old")
    log = store.open("old", "bench.serve")
    for first in range(0, records, 1000):
        said = [UserMessage(text=f"Message {first + number}", imported=True) for number in range(1000)]
        now = clock.now()
        log.append("old", first, [draft(one, event_id=ids.new(now), recorded_at=now, turn=0, step=0) for one in said])
    log.seal()
    log.close()


def measure(plan: Plan) -> Seen:
    """Run all parts."""
    names = [f"agent-{number}" for number in range(plan.agents)]
    count = plan.agents * plan.messages
    http: list[Cost] = []
    with workspace() as folder, ExitStack() as stack:
        machine = noise(folder)
        grow(folder / "http", plan.records)
        server = stack.enter_context(Server(folder / "http"))
        asyncio.run(create(server.port, names))
        api = api_rounds(folder / "api", plan)
        for _ in range(plan.rounds):
            cpu = server.cpu_s()
            took = asyncio.run(talk(server.port, names, plan.messages))
            http.append(Cost((server.cpu_s() - cpu) / count * 1000, count / took))
        kb, core = asyncio.run(idle_streams(server, names, plan))
        first, live = asyncio.run(resumed(server.port, plan))
        starts, bare = [], []
        for number in range(plan.starts):
            with Server(folder / f"start-{number}") as fresh:
                starts.append(fresh.start_s)
            bare.append(process(*FLOOR).end_s)
    return Seen(machine, http, api, kb, core, first, live, starts, bare)


def figures(seen: Seen) -> list[Figure]:
    """Return the figures, in the order of KEYS."""
    api_cpu, api_rate = (median([getattr(one, field) for one in seen.api]) for field in ("cpu_ms", "per_s"))
    added = median([one.cpu_ms for one in seen.http]) - api_cpu
    values = (
        (added, "ms", api_cpu),
        (median([one.per_s for one in seen.http]), "/s", api_rate),
        (seen.stream_kb, "kB", 1.0),
        (max(seen.stream_core, CORE_STEP), "cores", CORE_STEP),
        (median(seen.first_byte_ms), "ms", median(seen.live_ms)),
        (median(seen.start_s), "s", median(seen.bare_start_s)),
    )
    return [Figure(key, *value) for key, value in zip(KEYS, values, strict=True)]


def lines(seen: Seen, found: Sequence[Figure], plan: Plan) -> list[Line]:
    """Return the table."""
    runs = (
        among([one.cpu_ms for one in seen.http]), among([one.per_s for one in seen.http]), f"{plan.streams} streams",
        f"{plan.idle_s:.0f} s", among(seen.first_byte_ms), among(seen.start_s),
    )  # fmt: skip
    return [line(figure, goal, run) for figure, goal, run in zip(found, GOALS, runs, strict=True)]


def report(plan: Plan) -> None:
    """Measure what `plan` asks for and print it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, plan.streams + 1000)), hard))
    seen = measure(plan)
    found = figures(seen)
    show("serve", seen.noise, found, lines(seen, found, plan))


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    args = options("serve", "What HTTP adds to messages, and what open streams cost.", argv)
    report(QUICK if args.quick else Plan())
    return 0


if __name__ == "__main__":
    sys.exit(main())
