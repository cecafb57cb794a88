"""Claim a store in a bucket for one cluster, and give each host of the cluster its right to take logs of earlier hosts.

There are no locks in a bucket: a log whose owner died on another machine looks like one that is in use. The supervisor
knows that hosts which it started have died. Of the hosts of other clusters it knows nothing, but their supervisor
changed the claim as long as it lived. A cluster that holds the claim counts the hosts of all others as dead. If one of
them still writes, the log refuses it: the claim decides who may take a log, never who may write.

Used by the supervisor's actor and `RayHostProvider`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from everlog.actors.cluster.placement import FenceRight
from everlog.actors.ports.effects import Clock
from everlog.events import ClusterError, StoreError
from everlog.events.times import MICROSECONDS
from everlog.store import HostMark
from everlog.store.stores.claims import BEAT_S, EXPIRES_S, Claim

LOOK_S = 1.0
"""Seconds between two looks at a claim that another cluster holds."""
WAIT_S = EXPIRES_S + 2 * BEAT_S
"""Seconds that a new cluster waits for the claim of one that may have died, before it refuses to start hosts."""


class ClusterClaim:
    """The claim of a cluster, and the numbers of its hosts. All coroutines run on one event loop."""

    def __init__(
        self,
        cluster: str,
        claim: Claim | None,
        *,
        clock: Clock,
        now_us: Callable[[], int],
        note: Callable[[str], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        aside: Callable[[Callable[[], str]], Awaitable[str]] = asyncio.to_thread,
    ) -> None:
        """`cluster` is the id of the cluster; `claim` is None for a store in a folder, whose locks tell who lives.
        `now_us` returns microseconds of a clock that never goes back; `aside` runs a function that blocks.
        """
        self._cluster = cluster
        self._claim = claim
        self._clock, self._now_us, self._sleep, self._note = clock, now_us, sleep, note
        self._aside = aside
        self._last_start = 0
        self._kept_at: int | None = None
        """Time before the last change of the claim by this cluster; None if another one holds it."""
        self._watched_from: int | None = None
        """Time when another holder was seen first; None if this cluster holds the claim."""
        self._other = ""
        self._beating = asyncio.Lock()

    async def run(self) -> None:
        """Take the claim as soon as possible, and keep it, for ever."""
        while self._claim is not None:
            await self._beat()
            await self._sleep(BEAT_S if self._is_held() else LOOK_S)

    async def right(self) -> FenceRight:
        """Return the mark and the right of the next host. Wait for the claim if its holder may have died. Raises
        ClusterError if another cluster holds it.
        """
        while self._claim is not None and not self._is_held():
            await self._beat()
            if self._is_held():
                break
            if self._watched_from is not None and self._now_us() - self._watched_from >= WAIT_S * MICROSECONDS:
                raise ClusterError(
                    f"Another cluster runs the agents of this store: {self._other}. Nothing was started here; one "
                    "cluster can run a store in a bucket. Use that cluster, or end it with `everlog down` there. If "
                    f"it has died, its claim is free {EXPIRES_S:.0f} seconds later."
                )
            await self._sleep(LOOK_S)
        self._last_start = max(self._last_start + 1, self._clock.now())
        return FenceRight(HostMark(self._cluster, self._last_start), alone=self._claim is not None)

    async def free(self) -> None:
        """Let another cluster take the claim at once."""
        if self._claim is not None and self._is_held():
            with suppress(StoreError):  # then it waits until the claim counts as left
                await self._aside(self._freed)
        self._kept_at = None

    def _is_held(self) -> bool:
        """Return True if no other cluster can have taken the claim yet, however long this process stood still."""
        return self._kept_at is not None and self._now_us() - self._kept_at < EXPIRES_S * MICROSECONDS

    async def _beat(self) -> None:
        """Take or keep the claim. If the bucket does not answer, the claim stays as it is."""
        async with self._beating:
            began = self._now_us()
            try:
                other = await self._aside(self._taken_and_kept)
            except StoreError as error:
                self._note(f"the claim of the cluster could not be kept: {error}")
                return
            if other and self._kept_at is not None:
                self._note(f"another cluster runs the agents of this store now: {other}; no host is started here")
            self._other = other
            self._kept_at = None if other else began
            self._watched_from = (self._watched_from or began) if other else None

    def _freed(self) -> str:
        assert self._claim is not None
        self._claim.free()
        return ""

    def _taken_and_kept(self) -> str:
        """Take the claim, and change it. Return its holder in words if that is another cluster."""
        assert self._claim is not None
        return self._claim.take() or ("" if self._claim.keep() else "another process")
