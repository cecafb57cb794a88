"""Ask a service which of its rules endanger a store: rules that delete objects, and old versions that it keeps.

obstore has no requests for that, so botocore makes them, which is imported here and not before. Used by `everlog store
check`. Nothing is written.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from everlog.events import UsageError

EXTRA = "everlog[object-check]"
UNREADABLE = ("GLACIER", "DEEP_ARCHIVE")
"""Storage classes whose objects cannot be read before they are restored."""


class BucketRules(NamedTuple):
    """Answers of a service about a bucket. A text in `untold` says which question it did not answer, and why."""

    deleting: list[str]
    """Rules that delete objects of the store, or make them unreadable."""
    versioning: str
    """`Enabled` or `Suspended`; empty if it was never switched on."""
    old_versions: int
    """Old versions and marks of deleted objects under the prefix."""
    untold: list[str]


def client_of(url: str) -> Any:
    """Return a client for the service of the bucket at `url`. Raises UsageError."""
    if not url.startswith("s3://"):
        raise UsageError(f"{url.partition(':')[0]} has other requests than S3 for its rules. Look at them there.")
    try:
        from botocore.session import get_session
    except ImportError as error:
        raise UsageError(f"Rules and versions of a bucket are read by botocore: pip install '{EXTRA}'.") from error
    return get_session().create_client("s3")


def rules_of(client: Any, url: str) -> BucketRules:
    """Return what a service says about the rules and versions under the address of a store."""
    from botocore.exceptions import BotoCoreError, ClientError

    bucket, _, prefix = url.partition("://")[2].partition("/")
    deleting: list[str] = []
    versioning, old, untold = "", 0, []
    try:
        found = client.get_bucket_lifecycle_configuration(Bucket=bucket)
        deleting = [said for rule in found.get("Rules", ()) if (said := danger_of(rule, f"{prefix}/"))]
    except ClientError as error:
        if _code(error) != "NoSuchLifecycleConfiguration":
            untold.append(f"lifecycle rules ({_code(error)})")
    except BotoCoreError as error:
        untold.append(f"lifecycle rules ({type(error).__name__})")
    try:
        versioning = client.get_bucket_versioning(Bucket=bucket).get("Status", "")
        if versioning:
            for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=f"{prefix}/"):
                old += sum(not version["IsLatest"] for version in page.get("Versions", ()))
                old += len(page.get("DeleteMarkers", ()))
    except ClientError as error:
        untold.append(f"versions ({_code(error)})")
    except BotoCoreError as error:
        untold.append(f"versions ({type(error).__name__})")
    return BucketRules(deleting, versioning, old, untold)


def danger_of(rule: Mapping[str, Any], prefix: str) -> str:
    """Return what a lifecycle rule does to the objects under `prefix`; empty if it does them no harm."""
    meant = rule.get("Filter", {})
    meant = meant.get("And", meant)
    start = meant.get("Prefix", rule.get("Prefix", ""))
    tagged = "Tag" in meant or meant.get("Tags")  # no object of a store has a tag
    if rule.get("Status") != "Enabled" or tagged or not (prefix.startswith(start) or start.startswith(prefix)):
        return ""
    name = f"the rule {rule.get('ID', '')!r} for {start or 'all objects'!r}"
    ends = rule.get("Expiration", {})
    if "Days" in ends or "Date" in ends:
        when = f"after {ends['Days']} days" if "Days" in ends else f"on {ends['Date']}"
        return f"{name} deletes objects {when}"
    moved = [move["StorageClass"] for move in rule.get("Transitions", ()) if move["StorageClass"] in UNREADABLE]
    return f"{name} moves objects to {moved[0]}, where they cannot be read" if moved else ""


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", "unknown"))
