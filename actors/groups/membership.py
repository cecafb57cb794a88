"""Check the settings of a group, and that its members exist. Used by `agent_setup`, `Agent` and `LocalSystem`."""

from collections.abc import Sequence

import msgspec

from everlog.actors.groups.rules import DONE, RULES
from everlog.actors.mail.names import spoken
from everlog.actors.models.model_types import GROUP
from everlog.actors.ports.effects import OtherAgents
from everlog.events import AgentConfigured, BadInput, UnknownAgent

MEMBERS_MAX = 16
SPEECHES_MAX = 32
"""Most speeches in one round: members times rounds."""
UNCHANGED = "Nothing was changed."


def check_group(config: AgentConfigured) -> None:
    """Raise BadInput for settings of a group that cannot work, and for those of a group in any other agent."""
    if not config.model.startswith(GROUP):
        if config.members or config.manager:
            raise BadInput(
                f"Only a group has members and a manager, and the model {config.model!r} makes no group: the model of "
                f"one is {_rules()}. {UNCHANGED}"
            )
        return
    rule, members = config.model.removeprefix(GROUP), config.members
    if rule not in RULES:
        raise BadInput(f"There is no rule {config.model!r} for groups; there are {_rules()}. {UNCHANGED}")
    if not 1 <= len(members) <= MEMBERS_MAX:
        raise BadInput(f"A group has 1 to {MEMBERS_MAX} members, not {len(members)}. {UNCHANGED}")
    for name in members:
        if members.count(name) > 1:
            raise BadInput(f"The member {name!r} is given twice. {UNCHANGED}")
        if not name.strip() or name != name.strip():
            raise BadInput(f"A member is the name of an agent, not {name!r}. {UNCHANGED}")
    _check_manager(rule, config.manager, members)
    if rule == "supervisor" and config.rounds != 1:
        raise BadInput(f"A supervised group has one round for each input, not {config.rounds}. {UNCHANGED}")
    if len(members) * config.rounds > SPEECHES_MAX:
        raise BadInput(
            f"{len(members)} members and {config.rounds} rounds make {len(members) * config.rounds} speeches for one "
            f"input; the most are {SPEECHES_MAX}. {UNCHANGED}"
        )


def _check_manager(rule: str, manager: str, members: Sequence[str]) -> None:
    if rule == "round-robin":
        if manager:
            raise BadInput(f"A group whose members speak in order has no manager, such as {manager!r}. {UNCHANGED}")
        return
    if not manager.strip():
        raise BadInput(f"The rule {GROUP + rule} needs a manager: the name of an agent that is no member. {UNCHANGED}")
    if manager in members:
        raise BadInput(f"{manager!r} is a member and the manager: it can be one of them. {UNCHANGED}")
    if rule == "dynamic" and DONE in members:
        raise BadInput(f"A member called {DONE!r} could not be told from the answer that ends a round. {UNCHANGED}")


def _rules() -> str:
    return ", ".join(GROUP + rule for rule in RULES)


async def with_members(
    agent_id: str, others: OtherAgents, config: AgentConfigured, recorded: AgentConfigured | None
) -> AgentConfigured:
    """Return the configuration of a group with the names that its members and manager have in the log, which answers
    are matched by: a name that `rename` gave may be taken from an agent.

    Raises BadInput if one of a group that is new or was changed does not exist, is deleted, is the group itself, or has
    two names there.
    """
    names = [*config.members, *filter(None, [config.manager])]
    if recorded is not None and names == [*recorded.members, *filter(None, [recorded.manager])]:
        return config
    own, found = spoken(agent_id), dict[str, str]()
    for name in names:
        try:
            stream = own if name == own else spoken(await others.named(name, living=True))
        except (BadInput, UnknownAgent) as error:
            raise BadInput(f"A group needs members that exist. {error} {UNCHANGED}") from error
        if stream == own:
            raise BadInput(f"{name!r} cannot be a member of itself. {UNCHANGED}")
        if stream in found.values():
            raise BadInput(f"{name!r} is the same agent as another member or the manager, {stream!r}. {UNCHANGED}")
        found[name] = stream
    return msgspec.structs.replace(
        config, members=[found[name] for name in config.members], manager=found.get(config.manager, "")
    )
