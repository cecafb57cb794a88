"""A whole simulation: troubles for a time, then calm, then judgement."""

from everlog.store import FileLog, FileStore, PartitionReader, check, records_of
from tests.sim.checkers import Attempt, Violation
from tests.sim.sim_processes import AGENTS, COUNTING, FOLDER_OF, Life, ReaderLife, WriterLife
from tests.sim.sim_store_world import World
from tests.sim.trouble_mix import Change

LINES_SHOWN = 40


class Failed(AssertionError):
    """The failure of a seed."""

    def __init__(self, world: World, which: str, error: BaseException) -> None:
        self.world = world
        self.reason = f"{type(error).__name__}: {error}"
        shown = "\n".join(trace(world)[-LINES_SHOWN:])
        super().__init__(
            f"seed {which}: {self.reason}\n\nthe last calls:\n{shown}\n\nsee it again: python -m tests.sim {which}"
        )


def simulate(seed: int, change: Change = lambda habits: habits, scenario: str = "", kind: type[World] = World) -> World:
    """Run the world of `seed` and judge it. Raises Failed, which says how to reproduce the run.

    `scenario` is the name of this `change` at the command line.
    """
    world = kind(seed, change)
    try:
        with world.begun():
            run(world)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise Failed(world, f"{scenario} {seed}".strip(), error) from error
    return world


def run(world: World) -> None:
    """Cause troubles for a time, then calm, then judge. Raises any unexpected error."""
    _troubled(world)
    _calm(world)


def trace(world: World) -> list[str]:
    """Return the calls, one line each."""
    return [f"{number:5} {who:10} {what} {about}" for number, (who, what, about) in enumerate(world.trace)]


def _troubled(world: World) -> None:
    habits = world.habits
    while world.calls < habits.calls:
        if len(world.processes) < habits.live_max and world.chance.random() < 0.3:
            _begin(world)
        world.turn()


def _begin(world: World) -> None:
    reader = world.chance.random() < world.habits.readers
    process = world.born("reader" if reader else "writer")
    life = ReaderLife(world, process) if reader else WriterLife(world, process)
    world.start(process, life)


def _calm(world: World) -> None:
    """End the remaining processes after the troubles; the log must then open and continue by itself."""
    ending = world.habits.ending
    world.habits = world.habits.calm()
    world.restless = world.habits.restless
    world.storm = 0
    world.note("the world", "is calm:", ending)
    world.grow_calm()
    for process in world.processes:
        process.stopped_until = 0
    if ending == "power loss":
        world.lose_power()
    elif ending == "kill":
        world.kill_all()
    elif ending == "finish":
        _finish(world)
    Judge(world, world.born("judge")).live()


def _finish(world: World) -> None:
    while world.processes:
        world.turn()


class Judge(Life):
    """The last owner. It takes over from any living owner, lets that owner notice, and checks everything."""

    def live(self) -> None:
        self.world.guests.append(self.process)
        store = self.store()
        self.look_at_all(store.reader(FOLDER_OF))
        log = self.open(store, take_over=True)
        self.look_at_all(log)
        _finish(self.world)
        log.close()
        log = self.open(store, take_over=False)
        for agent_id in AGENTS:
            self.append(log, self.history.attempt(agent_id, self.drafts()))
        if self.world.habits.seals:
            agent_id = self.chance.choice(AGENTS)
            self.append(log, self.erasure(agent_id, log.head(agent_id).seq))
            self.seal(log)
            self.find_nothing()
        log.close()
        self.settle(store)

    def look_at_all(self, log: FileLog | PartitionReader) -> None:
        """Check that everything that was acknowledged is there."""
        self.history.saw_table(list(records_of(log.table())), self.history.due())

    def append(self, log: FileLog, attempt: Attempt) -> None:
        """Append, and check that the log accepts the append at once."""
        seq = log.head(attempt.agent_id).seq
        attempt.places.append(seq)
        published = self.world.published(self.folder())
        commit = log.append(attempt.agent_id, seq, attempt.drafts)
        self.history.acknowledge(attempt, seq, commit, epoch=log.epoch, published=published)

    def settle(self, store: FileStore) -> None:
        """Check the whole log, by every way of reading it."""
        reader = store.reader(FOLDER_OF)
        records = list(records_of(reader.table()))
        heads = {agent_id: reader.head(agent_id) for agent_id in reader.agents()}
        self.history.settled(records, heads)
        self.history.all_kept(self.kept())
        for agent_id in AGENTS:
            stream = list(reader.read(agent_id))
            if stream != [record for record in records if record.agent_id == agent_id]:
                raise Violation(f"the stream of {agent_id!r} is not what the table has of it")
        report = check(store.partition(reader.partition), deep=True, derive=COUNTING)
        if not report.ok or reader.damage:
            raise Violation(f"the log is not whole: {report.errors} {reader.damage}")
        if (report.commits, report.records) != (records[-1].commit, len(records)):
            raise Violation(f"check counts {report.commits} commits with {report.records} records")
