"""Have a model rate the messages that no model has rated, and record the ratings: before a reflection, if wanted."""

from everlog.actors.agent.agent import Agent
from everlog.actors.derivation.importance_model import RATED_MAX, rate
from everlog.actors.derivation.insight_rules import RULES
from everlog.actors.deriving.derivation_model import DerivationModel
from everlog.actors.deriving.memory_derivation import evidence_of

BATCHES_MAX = 20
"""Most requests of one call."""


async def rate_messages(agent: Agent, model_name: str, after: int, generation: int = 1) -> int:
    """Rate the messages after a seq that were rated by rules only. Return the number of rated messages.

    A batch of which nothing could be taken stays rated by rules. Raise ModelError; batches before are committed.
    """
    rows = await agent.rows("importance")
    unrated = {row["seq"] for row in rows if row["rater"] == RULES and row["seq"] > after}
    if not unrated:
        return 0
    records = agent.records(min(unrated))
    said = [one for record in records if record.seq in unrated and (one := evidence_of(record)) is not None]
    model = DerivationModel(agent, "reflection", model_name, generation)
    rated = 0
    for first in range(0, min(len(said), RATED_MAX * BATCHES_MAX), RATED_MAX):
        event, reply = await rate(model, said[first : first + RATED_MAX], agent.zone, generation)
        if event is not None:
            await agent.commit([event], turn=agent.turn, step=0, cause=reply)
            rated += len(event.ratings)
    return rated
