"""Describe the services that have buckets: their variables, their words for errors, and what a version means there.

Used by `obstore_bucket`, which sends the requests, and by `open_bucket`, which tries the service. Nothing else of the
store differs between services.
"""

import ipaddress
import re
from collections.abc import Mapping
from typing import NamedTuple

from everlog.events import UsageError

PORT_MAX = 65535
_ADDRESS = re.compile(
    r"https?://(?:[a-z0-9._-]+|\[(?P<ip>[0-9a-f:.]+)\])(?::(?P<port>[0-9]{1,5}))?(?:/[a-z0-9/._~%!$&'()*+,;=:-]*)?",
    re.IGNORECASE,
).fullmatch


class BucketService(NamedTuple):
    """One kind of service; the names of variables are those that obstore reads."""

    name: str
    endpoints: tuple[str, ...]
    """Variables with the address of the service."""
    credentials: str
    """Variables and rules that matter if the service refuses a request."""
    condition: str
    """Header of a request that creates an object or fails."""
    counts_versions: bool = False
    """True if each object has a version, also where old ones are not kept."""


S3 = BucketService(
    "S3 of AWS",
    ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and the rights on the bucket",
    "If-None-Match: *",
)
GOOGLE = BucketService(
    "Google Cloud Storage",
    ("GOOGLE_BASE_URL",),
    "GOOGLE_APPLICATION_CREDENTIALS (or GOOGLE_SERVICE_ACCOUNT, GOOGLE_SERVICE_ACCOUNT_KEY, GOOGLE_BEARER_TOKEN), the "
    "clock of this machine, and the rights on the bucket",
    "x-goog-if-generation-match: 0",
    counts_versions=True,
)
AZURE = BucketService(
    "Azure Blob Storage",
    ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
    "AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY (or AZURE_STORAGE_SAS_TOKEN, AZURE_TENANT_ID, "
    "AZURE_CLIENT_ID, AZURE_CLIENT_SECRET) and the rights on the container",
    "If-None-Match: *",
)
SERVICES: Mapping[str, BucketService] = {"s3": S3, "gs": GOOGLE, "az": AZURE}
"""Services by the scheme of an address: the schemes of `names.SCHEMES`."""


def service_of(url: str) -> BucketService:
    """Return the service of the bucket at `url`; that of S3 for a bucket of another scheme, such as one in memory."""
    return SERVICES.get(url.partition("://")[0], S3)


def check_endpoint(service: BucketService, environment: Mapping[str, str]) -> None:
    """Raise UsageError if the address of the service, as the variables name it, is none: obstore would end the thread
    that sends the first request.
    """
    for name in service.endpoints:
        value = environment.get(name)
        if value is None or _is_address(value):
            continue
        found = "a user name or a password in it" if "@" in value else repr(value) if value else "nothing"
        raise UsageError(
            f"The variable {name} must be the address of a service, as http://127.0.0.1:9000 or "
            f"https://storage.example.com, but has {found}. Nothing was sent. Correct it, or unset it to use "
            f"{service.name}."
        )


def _is_address(text: str) -> bool:
    found = _ADDRESS(text)
    if found is None or int(found["port"] or 0) > PORT_MAX:
        return False
    try:
        return found["ip"] is None or bool(ipaddress.IPv6Address(found["ip"]))
    except ValueError:
        return False
