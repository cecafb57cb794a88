"""The feed of a store and its webhooks, as they go over HTTP."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec

from everlog.interfaces.wire.records import HttpRecord


class FeedQuery(msgspec.Struct, frozen=True):
    """Beginning of a feed, and filter of its records."""

    after: str | None = None
    """`now`, `start`, or the id of an event of the feed; the header Last-Event-ID counts before it. Left out: `now`."""
    agent: list[str] = []
    """Names of agents, or patterns with `*`, `?` and `[...]`; none: all."""
    type: list[str] = []
    """Types of events; none: all."""


class FeedRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Beginning of a feed, and filter of its records, for positions that are too long for an address."""

    after: str = "now"
    agents: Sequence[str] = ()
    types: Sequence[str] = ()


class FeedRecords(msgspec.Struct, frozen=True, kw_only=True):
    """Event of a feed: whole commits. The event's id is the position after them."""

    records: Sequence[HttpRecord]


class CreateWebhook(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A receiver of records."""

    url: str
    agents: Sequence[str] = ()
    """Names of agents, or patterns with `*`, `?` and `[...]`; none: all."""
    types: Sequence[str] = ()
    """Types of events; none: all."""
    after: str = "now"
    """`now`, `start`, or a position that a feed gave."""


WebhookStatus = Literal["active", "failing", "parked"]


class WebhookShape(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook, without its secret."""

    id: str
    url: str
    agents: Sequence[str]
    types: Sequence[str]
    created_at: datetime
    status: WebhookStatus
    """`failing`: the last delivery failed and is tried again. `parked`: a day without success; nothing is sent."""
    failing_since: datetime | None
    last_error: str
    delivered: int
    """Deliveries that the receiver has acknowledged."""
    position: str
    """Position of the feed up to which the receiver has acknowledged everything."""


class CreatedWebhook(WebhookShape, frozen=True, kw_only=True):
    """A webhook that was just created."""

    secret: str
    """Key of the signatures, as Standard Webhooks has it: `whsec_` and base64. It is shown once."""


class WebhookList(msgspec.Struct, frozen=True, kw_only=True):
    """The webhooks of a tenant."""

    webhooks: Sequence[WebhookShape]


class WebhookData(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a delivery."""

    webhook: str
    records: Sequence[HttpRecord]


class WebhookBody(msgspec.Struct, frozen=True, kw_only=True):
    """Body of a delivery, as Standard Webhooks has it."""

    type: str
    timestamp: datetime
    """Time of the last record."""
    data: WebhookData
