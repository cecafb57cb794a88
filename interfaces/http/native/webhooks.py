"""Create, list, resume and remove webhooks. Deliveries are made in the background, see `http/webhooks`."""

import msgspec

from everlog.actors.feed.store_feed import FeedFilter
from everlog.events import BadInput, DuplicateId
from everlog.events.times import moment
from everlog.interfaces.http.core.idempotency import ids_of_key
from everlog.interfaces.http.core.routes import HttpCall, JsonResponse, not_found
from everlog.interfaces.http.webhooks.webhook_files import Webhook, WebhookState
from everlog.interfaces.http.webhooks.webhook_sender import secret_of
from everlog.interfaces.wire.agents import Done
from everlog.interfaces.wire.feed import CreatedWebhook, CreateWebhook, WebhookList, WebhookShape, WebhookStatus

WEBHOOKS_MAX = 100
"""Webhooks of one tenant."""


async def create_webhook(call: HttpCall) -> JsonResponse:
    """Create a webhook. The secret of its signatures is in this answer and in no other."""
    body: CreateWebhook = call.body
    service, now = call.service, call.service.ports.clock.now()
    await service.webhook_sender.check(body.url)
    key = call.request.headers.get("idempotency-key")
    webhook_id = service.ports.ids.new(now) if key is None else ids_of_key(key, f"webhook {call.names.tenant}", now).id
    webhook = Webhook(
        id=webhook_id, url=body.url, secret=secret_of(service.secret()), tenant=call.names.tenant, agents=body.agents,
        types=body.types, created_at=now,
    )  # fmt: skip
    before = await service.ports.aside(service.webhook_files.find, webhook_id)
    if before is not None:
        same = (before.url, list(before.agents), list(before.types), before.tenant)
        if same != (body.url, list(body.agents), list(body.types), call.names.tenant):
            raise DuplicateId("The Idempotency-Key was used for another webhook. Nothing was created.")
        return await _created(call, before)
    if len(await _mine(call)) >= WEBHOOKS_MAX:
        raise BadInput(f"There are {WEBHOOKS_MAX} webhooks already: remove one. Nothing was created.")
    position = service.feed.parse(body.after)
    async with service.feed.reader(position, FeedFilter(), call.names.stream_name) as reader:
        token = reader.position.token()
    await service.ports.aside(service.webhook_files.add, webhook, token)
    return await _created(call, webhook)


async def list_webhooks(call: HttpCall) -> WebhookList:
    """List webhooks, oldest first."""
    return WebhookList(webhooks=[await _shape(call, webhook) for webhook in await _mine(call)])


async def show_webhook(call: HttpCall) -> WebhookShape:
    """Return a webhook: its state, and the reason of the last failure."""
    return await _shape(call, await _found(call))


async def remove_webhook(call: HttpCall) -> Done:
    """Remove a webhook. A delivery that is under way may still arrive."""
    webhook = await _found(call)
    await call.service.ports.aside(call.service.webhook_files.remove, webhook.id)
    return Done()


async def resume_webhook(call: HttpCall) -> WebhookShape:
    """Deliver again for a webhook that was parked, from where its receiver is."""
    webhook, files = await _found(call), call.service.webhook_files

    def resume() -> None:
        state = files.state(webhook.id)
        if state is not None and state.parked:  # if that has changed meanwhile, another server has resumed it
            files.change(webhook.id, state, msgspec.structs.replace(state, parked=False, failing_since=None))

    await call.service.ports.aside(resume)
    return await _shape(call, webhook)


async def _mine(call: HttpCall) -> list[Webhook]:
    every: list[Webhook] = await call.service.ports.aside(call.service.webhook_files.all)
    return [webhook for webhook in every if webhook.tenant == call.names.tenant]


async def _found(call: HttpCall) -> Webhook:
    webhook_id = call.params["webhook"]
    webhook: Webhook | None = await call.service.ports.aside(call.service.webhook_files.find, webhook_id)
    if webhook is None or webhook.tenant != call.names.tenant:
        raise not_found(f"webhook {webhook_id[:80]!r}")
    return webhook


async def _shape(call: HttpCall, webhook: Webhook) -> WebhookShape:
    state: WebhookState | None = await call.service.ports.aside(call.service.webhook_files.state, webhook.id)
    if state is None:
        raise not_found(f"webhook {webhook.id!r}")
    status: WebhookStatus = "parked" if state.parked else "failing" if state.failing_since is not None else "active"
    return WebhookShape(
        id=webhook.id, url=webhook.url, agents=webhook.agents, types=webhook.types,
        created_at=moment(webhook.created_at), status=status,
        failing_since=None if state.failing_since is None else moment(state.failing_since),
        last_error=state.last_error, delivered=state.delivered, position=state.position,
    )  # fmt: skip


async def _created(call: HttpCall, webhook: Webhook) -> JsonResponse:
    shape = await _shape(call, webhook)
    return JsonResponse(CreatedWebhook(**msgspec.structs.asdict(shape), secret=webhook.secret), 201)
