"""Send many commands at once, again if their host died, and pair each with its outcome.

Used by `AgentSystem` for its calls to many agents.
"""

from collections.abc import AsyncIterator, Sequence

from everlog.actors.agent.commands import Command
from everlog.actors.hosting.command_batch import BatchCommand
from everlog.actors.ports.agent_constants import RESENDS_MAX
from everlog.actors.reply import SendOutcome
from everlog.actors.runtime import PriceLookup, Runtime
from everlog.events import HostLost


async def outcomes_of(
    runtime: Runtime, said: Sequence[tuple[str, Command]], known_prices: PriceLookup
) -> AsyncIterator[SendOutcome]:
    """Yield the outcome of each command as it completes. `said`: names of streams with their commands.

    A command whose host died is sent again up to RESENDS_MAX times; the command's id makes that idempotent.
    """
    prices = await known_prices()
    left = list(range(len(said)))
    for attempt in range(1 + RESENDS_MAX):
        orders = [BatchCommand(number, *said[which]) for number, which in enumerate(left)]
        lost = []
        async for outcomes in runtime.perform_many(orders):
            for outcome in outcomes:
                which = left[outcome.number]
                if isinstance(outcome.error, HostLost) and attempt < RESENDS_MAX:
                    lost.append(which)
                else:
                    agent_id, command = said[which]
                    yield SendOutcome(agent_id, command.id, outcome.records, outcome.value, outcome.error, prices)
        left = sorted(lost)
        if not left:
            return
