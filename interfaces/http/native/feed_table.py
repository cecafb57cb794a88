"""The table of the feed and its webhooks: every route, with its role and shapes."""

from everlog.interfaces.http.core.routes import EVENT_STREAM, Route, RouteTable
from everlog.interfaces.http.native import feed, webhooks
from everlog.interfaces.http.native.resource_table import API
from everlog.interfaces.wire import feed as shapes
from everlog.interfaces.wire.agents import Done

WEBHOOK = f"{API}/webhooks/{{webhook}}"

FEED: RouteTable = (
    Route("GET", f"{API}/feed", feed.stream_feed, "Stream the records of all agents", query=shapes.FeedQuery,
          media=(EVENT_STREAM,)),
    Route("POST", f"{API}/feed", feed.open_feed, "Stream the records of all agents from a long position",
          body=shapes.FeedRequest, media=(EVENT_STREAM,)),
    Route("GET", f"{API}/webhooks", webhooks.list_webhooks, "List webhooks", "admin", answer=shapes.WebhookList),
    Route("POST", f"{API}/webhooks", webhooks.create_webhook, "Create a webhook", "admin",
          body=shapes.CreateWebhook, answer=shapes.CreatedWebhook, status=201),
    Route("GET", WEBHOOK, webhooks.show_webhook, "Show a webhook", "admin", answer=shapes.WebhookShape),
    Route("DELETE", WEBHOOK, webhooks.remove_webhook, "Remove a webhook", "admin", answer=Done),
    Route("POST", f"{WEBHOOK}/resume", webhooks.resume_webhook, "Resume a parked webhook", "admin",
          answer=shapes.WebhookShape),
)  # fmt: skip
"""Routes of the feed of a store."""
