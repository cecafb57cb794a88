"""Prepare reruns in this process. A fork has a log of its own, so a rerun needs no host, wherever the parent runs.

Used by `AgentSystem`, for reruns and for the comparison of a fork with its parent.
"""

import os

from everlog.actors.agent.commands import SessionCapabilities
from everlog.actors.gateway.gateway_limits import GatewayLimits, limits_from
from everlog.actors.hosting.agent_factory import GatewayCall, models_through
from everlog.actors.ports.effects import ArchiveClient
from everlog.actors.ports.ports import Ports
from everlog.actors.rerun.rerun import RerunEnvironment
from everlog.actors.rerun.rerun_comparison import TokenPrices
from everlog.store import FileStore


def stage(
    store: FileStore,
    capabilities: SessionCapabilities | None,
    fork: str,
    *,
    ask: GatewayCall,
    archive: ArchiveClient | None,
    ports: Ports,
    limits: GatewayLimits | None = None,
) -> RerunEnvironment:
    """Return the environment of the rerun into `fork`, with the gateway (`ask`) and the archive of its system.

    `limits`: gateway limits that hold the prices of tokens; None: those of the EVERLOG_GATEWAY_ variables. Raises
    BadInput.
    """
    capabilities, limits = capabilities or SessionCapabilities(), limits or limits_from(os.environ)
    return RerunEnvironment(
        store=store,
        ports=ports,
        models=models_through(ask, fork, store.root, capabilities.base_url),
        tools=capabilities.tools,
        grants=capabilities.grants,
        archive=archive,
        prices=TokenPrices(limits.price_in, limits.price_out),
    )
