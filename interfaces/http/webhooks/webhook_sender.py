"""Send one delivery of a webhook, signed as Standard Webhooks has it, to an address that may be reached.

Only addresses of the public network are, unless the operator names the host. The connection goes to the address that
was checked, and redirects are not followed.
"""

import asyncio
import base64
import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from everlog.actors.functions.allowed_hosts import AllowedHosts, RequestTarget, any_target, is_allowed
from everlog.actors.functions.network_addresses import Address, HostResolver, check_addresses, is_public, resolved
from everlog.events import BadInput, FunctionError

SECRET_PREFIX = "whsec_"
SEND_S = 15.0
"""Longest time for one try, in seconds."""
ANSWER_BYTES_MAX = 4096
"""Bytes of the answer that are read; what it says is not used."""
RETRY_AFTER_MAX_S = 3600.0


class DeliveryResult(msgspec.Struct, frozen=True):
    """Outcome of one try."""

    error: str = ""
    """Reason why the delivery counts as failed; empty: the receiver acknowledged it."""
    retry_after_s: float = 0.0
    """Seconds for which the receiver asked; 0: none."""


WebhookSend = Callable[[str, bytes, Mapping[str, str]], Awaitable[DeliveryResult]]
"""Sends a body with headers to a URL."""


class WebhookSender:
    """Sends deliveries to public addresses, and to hosts that the operator allows."""

    def __init__(self, allowed: AllowedHosts, resolve: HostResolver = resolved, limit_s: float = SEND_S) -> None:
        self._allowed, self._resolve, self._limit_s = allowed, resolve, limit_s

    async def check(self, url: str) -> None:
        """Raise BadInput for a URL that deliveries could never go to. A host that is not known now may be so later."""
        try:
            async with asyncio.timeout(self._limit_s):
                await self._addresses(any_target(url))
        except FunctionError as error:
            raise BadInput(f"{error} The operator can allow a host: `everlog serve --webhook-host HOST`.") from error
        except (OSError, TimeoutError):
            pass

    async def send(self, url: str, body: bytes, headers: Mapping[str, str]) -> DeliveryResult:
        """Send a body. Never raises for what the network or the receiver does."""
        from everlog.actors.functions.http_transport import exchange

        try:
            async with asyncio.timeout(self._limit_s):
                goal = any_target(url)
                addresses = await self._addresses(goal)
                answer = await exchange(goal, addresses, "POST", body, _nothing, ANSWER_BYTES_MAX, headers)
        except TimeoutError:
            return DeliveryResult(f"there was no whole answer within {self._limit_s:g} seconds")
        except (OSError, ValueError, FunctionError) as error:
            return DeliveryResult(f"{type(error).__name__}: {error}"[:300])
        if 200 <= answer.status < 300:
            return DeliveryResult()
        return DeliveryResult(f"the receiver answered {answer.status}", _seconds(answer.headers.get("retry-after", "")))

    async def _addresses(self, goal: RequestTarget) -> Sequence[Address]:
        return await check_addresses(
            goal.host, goal.port, self._resolve, lambda address: is_public(address) or is_allowed(goal, self._allowed)
        )


def signed_headers(secret: str, delivery_id: str, at_s: int, body: bytes) -> dict[str, str]:
    """Return the headers of a delivery. `at_s`: seconds UTC of this try."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    digest = hmac.new(key, f"{delivery_id}.{at_s}.".encode() + body, hashlib.sha256).digest()
    signature = f"v1,{base64.b64encode(digest).decode()}"
    return {"webhook-id": delivery_id, "webhook-timestamp": str(at_s), "webhook-signature": signature}


def secret_of(text: str) -> str:
    """Return the secret of a webhook, made of 256 random bits as text."""
    return SECRET_PREFIX + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _seconds(text: str) -> float:
    return min(float(text), RETRY_AFTER_MAX_S) if text.isdecimal() and len(text) < 9 else 0.0


def _nothing() -> None:
    """Do nothing when a request leaves: each delivery may come twice, and has an id."""
