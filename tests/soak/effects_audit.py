"""Counterpart of `killed_effects.py`: it kills processes, counts their outside effects, and compares these with the
log.
"""

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from everlog.actors.agent.local_system import AgentView
from everlog.actors.agent.undo import INTERRUPTED
from everlog.actors.functions.memgpt_functions import BUILTIN
from everlog.actors.replay.rebuild_check import rebuild, verify
from everlog.events import ApprovalDecided, FunctionResult, FunctionStarted, Record, event_of
from everlog.store import FileStore, check
from tests.soak.effect_functions import FUNCTIONS, functions

ROOT = Path(__file__).parents[2]
ANSWER_S_MAX = 60
"""Seconds of silence after which a run counts as stuck."""
MOMENT_S_MAX = 0.012
"""Maximum seconds between a point and a kill at a random moment after it."""
LIFE_S_MAX = 0.15
"""Maximum seconds between the start of a process and a kill at a random moment."""


ROUNDS_MAX = 25
"""Kills for one agent, so that its log stays small."""
COUNTS = ("kills", "dispatches", "effects", "unknown")
TOOLS = {made.name: made for made in (*BUILTIN, *functions(lambda number, *_: f"done {number}"))}


class Broken(AssertionError):
    """A broken promise."""


EXPECTED = {
    #                    at_most_once  idempotent  read_only  pure  model  server  approved
    "request torn":      ("",          "",         "",        "",   "",    "",     "1"),
    "request written":   ("",          "",         "",        "",   "",    "",     "1"),
    "request synced":    ("",          "",         "",        "",   "",    "",     "1"),
    "request durable":   ("",          "",         "",        "",   "",    "",     "1"),
    "decision torn":     ("",          "",         "",        "",   "",    "",     "1"),
    "decision written":  ("",          "",         "",        "",   "",    "",     "1"),
    "decision synced":   ("",          "",         "",        "",   "",    "",     "1"),
    "decision durable":  ("",          "",         "",        "",   "",    "",     "1"),
    "before intent":     ("1",         "1",        "",        "",   "",    "1",    "1"),
    "intent torn":       ("1",         "1",        "",        "",   "",    "1",    "1"),
    "intent written":    ("0?",        "1",        "",        "",   "",    "0?",   "0?"),
    "intent synced":     ("0?",        "1",        "",        "",   "",    "0?",   "0?"),
    "before dispatch":   ("0?",        "1",        "1",       "1",  "1",   "0?",   "0?"),
    "dispatched":        ("1?",        "2",        "2",       "2",  "2",   "1?",   "1?"),
    "returned":          ("1?",        "2",        "2",       "2",  "2",   "1?",   "1?"),
    "result torn":       ("1?",        "2",        "2",       "2",  "2",   "1?",   "1?"),
    "result written":    ("1",         "1",        "1",       "1",  "1",   "1",    "1"),
    "result synced":     ("1",         "1",        "1",       "1",  "1",   "1",    "1"),
    "result durable":    ("1",         "1",        "1",       "1",  "1",   "1",    "1"),
}  # fmt: skip
"""Required outcome of a call whose process was killed at a point, after the next process has finished the turn: the
number of dispatches, with "?" if the outcome is reported as unknown. An intent that was written and not synced survives
a kill (a power loss may remove it: then nothing was dispatched either). An empty cell means that the point does not
exist.
"""
ROWS = tuple(FUNCTIONS)
ONCE = ("at_most_once", "server", "approved")
INTENDED = (*ONCE, "idempotent")
"""Rows whose effect never happens twice, and rows whose calls have an intent."""
POINTS = {row: [point for point, cells in EXPECTED.items() if cells[column]] for column, row in enumerate(ROWS)}
WRITING = ("torn", "written", "synced")
"""Endings of the points during an append, which count as one point together."""
ANYWHERE = "anywhere"
"""Plan of a kill at a random moment."""


def expected(row: str, point: str) -> str:
    return EXPECTED[point][ROWS.index(row)]


def passed_by(row: str) -> list[str]:
    """Return the points that an uninterrupted run passes."""
    return [point for point in POINTS[row] if not point.endswith("torn")]


def allowed(row: str, point: str) -> set[str]:
    """Return the possible outcomes of a call that was killed at a random moment after `point`."""
    ahead = passed_by(row)
    return {expected(row, name) for name in ahead[ahead.index(point) :][:2]}


class Kill(NamedTuple):
    """A process that was killed."""

    plan: str
    """The point at which the process waited to be killed, or ANYWHERE."""
    passed: str
    """The last point that the process had passed; empty if none."""


class Zygote:
    """The process that forks a child for each order."""

    def __init__(self, guard: str = "", module: str = "tests.soak.killed_effects") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *([guard] if guard else [])],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        self._rest = b""

    def order(self, *order: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()

    def heard(self, until: float | None = None) -> Iterator[list[Any]]:
        """Yield the lines of the children until the time `until`; without a time, a line must arrive."""
        assert self.process.stdout is not None
        while True:
            while b"\n" in self._rest:
                line, self._rest = self._rest.split(b"\n", 1)
                yield json.loads(line)
            wait = ANSWER_S_MAX if until is None else max(0.0, until - time.monotonic())
            if not select.select([self.process.stdout], [], [], wait)[0]:
                if until is None:
                    raise Broken("no word within a minute")
                return
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                raise Broken("the process that makes the lives is gone")
            self._rest += data

    def close(self) -> None:
        """Kill the process; a waiting child ends with it."""
        self.process.kill()
        self.process.communicate()


class Books:
    """One agent: its processes and their outside effects."""

    def __init__(self, folder: Path, row: str, agent_id: str) -> None:
        self.folder = folder
        self.row = row
        self.agent_id = agent_id
        self.kills: dict[int, Kill] = {}
        self.keys: defaultdict[int, list[str]] = defaultdict(list)
        self.told: defaultdict[int, list[str]] = defaultdict(list)
        self.kept: set[str] = set()
        self.counts: Counter[tuple[str, str]] = Counter()

    def live(self, zygote: Zygote, plans: Sequence[str], chance: random.Random) -> None:
        """Run and kill a process for each plan, then run one without a kill, and check the log."""
        for number, plan in enumerate(plans):
            self.kills[number] = self.killed(zygote, number, plan, chance)
        zygote.order(str(self.folder), self.agent_id, self.row, len(plans), "")
        self.until_dead(zygote, 0)
        self.judge()

    def killed(self, zygote: Zygote, number: int, plan: str, chance: random.Random) -> Kill:
        """Let a process play the round, and kill it according to the plan."""
        anywhere = plan == ANYWHERE
        wanted = chance.choice(["", *passed_by(self.row)]) if anywhere else plan
        zygote.order(str(self.folder), self.agent_id, self.row, number, "rest" if anywhere else plan)
        pid, passed = self.until_passed(zygote, wanted)
        if anywhere:
            until = time.monotonic() + chance.uniform(0, MOMENT_S_MAX if wanted else LIFE_S_MAX)
            passed = self.last_point(zygote.heard(until)) or passed
        os.kill(pid, signal.SIGKILL)
        return Kill(plan, self.until_dead(zygote, signal.SIGKILL) or passed)

    def until_passed(self, zygote: Zygote, point: str) -> tuple[int, str]:
        """Read lines until the process has reached `point` (empty: has started). Return its process id and the
        point.
        """
        pid = 0
        for kind, *words in zygote.heard():
            self.hear(kind, words)
            if kind == "life":
                pid = words[0]
            if kind == "dead":
                raise Broken(f"a life ended by itself before it came to {point!r}: {words}")
            if (kind, point) == ("life", "") or (kind, words) == ("point", [point]):
                break
        return pid, point

    def until_dead(self, zygote: Zygote, status: int) -> str:
        """Read lines until the process has ended with `status`. Return its last point, or an empty string."""
        last = ""
        for kind, *words in zygote.heard():
            self.hear(kind, words)
            if kind == "point":
                last = words[0]
            if kind == "dead":
                if words != [status]:
                    raise Broken(f"a life ended with the status {words}, not {status}")
                break
        return "" if last == "rest" else last

    def last_point(self, lines: Iterator[list[Any]]) -> str:
        last = ""
        for kind, *words in lines:
            self.hear(kind, words)
            if kind == "dead":
                raise Broken(f"a life ended by itself: {words}")
            if kind == "point" and words != ["rest"]:
                last = words[0]
        return last

    def hear(self, kind: str, words: Sequence[Any]) -> None:
        """Record an outside effect from a line."""
        if kind == "call":
            self.keys[words[0]].append(words[1])
        elif kind == "told":
            self.told[words[0]].append(words[1])
        elif kind == "kept":
            self.kept.update(words[0])

    def judge(self) -> None:
        """Compare the log with the outside effects. Raises Broken with every fault."""
        store = FileStore(self.folder, lambda: 0)
        faults = [error for name in store.partitions() for error in check(store.partition(name), deep=True).errors]
        view = AgentView(self.agent_id, store.reader(self.agent_id))
        records = list(view.reader.read(self.agent_id))
        for report in (verify(view, TOOLS), rebuild(view)):
            faults += report.faults
        faults += [
            f"turn {turn['turn']} is {turn['status']}" for turn in view.rows("turns") if turn["status"] != "done"
        ]
        view.close()
        if lost := self.kept - {record.event_id for record in records}:
            faults.append(f"acknowledged and lost: {sorted(lost)}")
        turns: defaultdict[int, list[Record]] = defaultdict(list)
        for record in records:
            turns[record.turn].append(record)
        rounds = rounds_of(list(turns.values()))
        for number, kill in self.kills.items():
            told = self.judge_round(number, kill, rounds.get(f"round {number}", []))
            faults += [
                f"round {number}, killed at {kill.passed or 'the start'} ({kill.plan}): {fault}" for fault in told
            ]
        if faults:
            raise Broken(f"{self.agent_id}: {'; '.join(faults)}")

    def judge_round(self, number: int, kill: Kill, records: Sequence[Record]) -> Iterator[str]:
        """Yield the faults of one round; `records` are those of its turn."""
        keys = self.keys[number]
        self.counts[kill.plan, "kills"] += 1
        if not records:
            if kill.passed or keys:
                yield "its message is not in the log"
            return
        events = [event_of(record) for record in records]
        asked = self.row == "approved"
        results = [
            e for e in events
            if isinstance(e, FunctionResult) and e.name == FUNCTIONS[self.row] and bool(e.approval) == asked
        ]  # fmt: skip
        started = sum(isinstance(event, FunctionStarted) for event in events)
        if (started, len(results)) != (int(self.row in INTENDED), 1):
            yield f"{started} intents and {len(results)} results"
            return
        unknown = results[0].unknown
        effects = len(set(keys)) if self.row == "idempotent" else len(keys)
        for name, count in (("dispatches", len(keys)), ("effects", effects), ("unknown", int(unknown))):
            self.counts[kill.plan, name] += count
        fate = f"{len(keys)}{'?' * unknown}"
        if not self.may_be(number, kill, fate):
            yield f"its call came to {fate!r}"
        if (effects > 1 and self.row in INTENDED) or (effects < 1 and not unknown):
            yield f"{effects} effects"
        if sum(record.type == "model_reply" for record in records) != (1 if self.row == "model" else 2):
            yield "a reply is missing, or one too many is in the log"
        if sum(record.type == "memory_edited" for record in records) != (self.row == "pure"):
            yield "its edit is missing, or there twice"
        for kind in ("approval_requested", "approval_decided"):
            if sum(record.type == kind for record in records) != asked:
                yield f"its {kind} is missing, or there twice"
        told = self.told[number]
        if not told or (self.row != "model" and any((INTERRUPTED in text) != unknown for text in told)):
            yield f"the model was told {told}"

    def may_be(self, number: int, kill: Kill, fate: str) -> bool:
        """Return True if `fate` is a possible outcome of the call."""
        if kill.plan != ANYWHERE:
            return fate == expected(self.row, kill.plan)
        after = self.kills.get(number + 1)
        if kill.passed and (after is None or after.passed):
            return fate in allowed(self.row, kill.passed)
        if self.row in ONCE:  # possibly killed during its recovery
            return fate in ("0?", "1?", "1")
        return fate.isdecimal() and fate != "0"


def rounds_of(turns: Sequence[list[Record]]) -> dict[str, list[Record]]:
    """Return the records of each round by its message: those of its turn, and of the turns of decisions about its
    calls.
    """
    rounds = {turn[0].text: turn for turn in turns if turn[0].type == "user_message"}
    for turn in turns:
        decided = event_of(turn[0])
        if isinstance(decided, ApprovalDecided):
            asking = next(records for records in rounds.values() if any(r.seq == decided.request for r in records))
            asking += turn
    return rounds


def plans_of(row: str, kills: int, anywhere: int, chance: random.Random) -> list[str]:
    """Return `kills` plans for each point (the points during a write count as one) and `anywhere` random ones,
    shuffled.
    """
    plans = [ANYWHERE] * anywhere
    for point in POINTS[row]:
        plans += [point] * (-(-kills // len(WRITING)) if point.endswith(WRITING) else kills)
    chance.shuffle(plans)
    return plans


def matrix(folder: Path, kills: int, anywhere: int, seed: int, *, rows: Sequence[str] = ROWS, guard: str = "",
           workers: int = 2) -> dict[str, Counter[tuple[str, str]]]:  # fmt: skip
    """Kill at each point of each of `rows`. Return the counters by row. Raises Broken if a promise was broken."""
    chance = random.Random(seed)
    jobs = []
    for row in rows:
        plans = plans_of(row, kills, anywhere, chance)
        jobs += [(row, plans[at : at + ROUNDS_MAX], chance.random()) for at in range(0, len(plans), ROUNDS_MAX)]

    def work(mine: int) -> list[Books]:
        zygote, done = Zygote(guard), []
        try:
            for number, (row, plans, own_seed) in list(enumerate(jobs))[mine::workers]:
                books = Books(folder / f"store-{number}", row, f"{row} {number}")
                books.live(zygote, plans, random.Random(own_seed))
                done.append(books)
        finally:
            zygote.close()
        return done

    with ThreadPoolExecutor(workers) as pool:
        done = [books for some in pool.map(work, range(workers)) for books in some]
    return {row: sum((books.counts for books in done if books.row == row), Counter()) for row in rows}


def table(counted: dict[str, Counter[tuple[str, str]]]) -> str:
    """Return the counters as text, a line for each row and point."""
    lines = [f"{'row':14}{'killed at':17}" + "".join(f"{name:>12}" for name in COUNTS)]
    for row, counts in counted.items():
        for point in [*POINTS[row], ANYWHERE]:
            lines.append(f"{row:14}{point:17}" + "".join(f"{counts[point, name]:12,}" for name in COUNTS))
    return "\n".join(lines)
