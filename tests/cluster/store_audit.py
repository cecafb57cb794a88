"""Checks of a store after a cluster was damaged, from its logs and effects."""

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.functions.memgpt_functions import BUILTIN
from everlog.actors.functions.tools import Tool
from everlog.actors.replay.rebuild_check import rebuild, verify
from everlog.events import FunctionResult, Record, event_of
from everlog.store import FileStore, check
from everlog.testing import ManualClock
from tests.cluster.load_senders import Bills, Load, payer


def judge(root: Path, paid: Path, load: Load, sample: int = 10) -> str:
    """Compare the messages with the logs. Return the figures in a line. Raises AssertionError."""
    store = FileStore(root, ManualClock(tick_us=1000).now)
    tools = [*BUILTIN, payer(paid)]
    system = LocalSystem(store, tools=tools[-1:])
    effects = Counter(paid.read_text().split()) if paid.exists() else Counter[str]()
    assert not [number for number, times in effects.items() if times > 1], "an effect happened twice"
    assert load.answered == load.said.keys(), "not everything was answered in the end"
    for agent in load.agents:
        _judge_agent(system, agent, load.said, agent in load.paying, effects)
    assert all(check(store.partition(name)).ok for name in store.partitions())
    _judge_sample(system, [*load.shared[:: max(1, len(load.shared) // sample)], *load.dedicated], tools)
    failures = ", ".join(f"{count} {name}" for name, count in sorted(load.failures.items())) or "none"
    return f"{len(load.said)} messages, {sum(effects.values())} effects; told and sent again: {failures}"


def _judge_sample(system: LocalSystem, agents: Collection[str], tools: Sequence[Tool]) -> None:
    """Verify and rebuild each of the agents."""
    for agent in agents:
        view = system.view(agent)
        assert (verify(view, {one.name: one for one in tools}).faults, rebuild(view).faults) == ([], []), agent
        view.close()


def _judge_agent(system: LocalSystem, agent: str, said: Bills, pays: bool, effects: Counter[str]) -> None:
    """Check that each message is in the log once and was answered once."""
    view = system.view(agent)
    try:
        records = list(view.reader.read(agent))
        turns = {int(turn["turn"]): str(turn["status"]) for turn in view.rows("turns")}
    finally:
        view.close()
    inputs = {record.event_id: record for record in records if record.type == "user_message"}
    assert len(inputs) == sum(record.type == "user_message" for record in records), f"{agent}: doubled"
    sent = {known for known, (to, _) in said.items() if to == agent}
    assert inputs.keys() == sent, f"{agent}: lost {sent - inputs.keys()}, invented {inputs.keys() - sent}"
    assert len({record.turn for record in inputs.values()}) == len(inputs), f"{agent}: two inputs in one turn"
    for known, record in inputs.items():
        turn = [other for other in records if other.turn == record.turn]
        assert record.text == said[known][1]
        assert turns[record.turn] == "done", f"{agent}: turn {record.turn} is {turns[record.turn]}"
        answers = [other.text for other in turn if other.type == "message_sent"]
        assert len(answers) == 1, f"{agent}: {record.text!r} was answered with {answers}"
        if pays:
            _judge_payment(turn, known, effects[known])


def _judge_payment(turn: Sequence[Record], number: str, times: int) -> None:
    """Check that the payment happened once, or that its result is unknown."""
    results = [event for event in map(event_of, turn) if isinstance(event, FunctionResult) and event.name == "pay"]
    assert len(results) == 1, f"{number}: {results}"
    assert results[0].unknown or times == 1, f"{number}: paid {times} times"
