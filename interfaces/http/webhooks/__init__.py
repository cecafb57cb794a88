"""Webhooks: records of the feed that are sent to receivers, signed, until they acknowledge them."""
