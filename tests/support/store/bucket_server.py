"""A service of the S3 protocol on loopback, with conditional writes, and buckets in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "not-a-secret-of-anyone", "AWS_REGION": "us-east-1"}


@contextmanager
def s3_server() -> Iterator[str]:
    """Run a service while the block runs; yield its address."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        _, port = server.get_host_and_port()
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop()


def make_bucket(address: str, name: str, *, versions: bool = False) -> None:
    """Create a bucket; with `versions` it keeps what is replaced and deleted."""
    client = client_of(address)
    client.create_bucket(Bucket=name)
    client.close()
    if versions:
        keep_versions(address, name)


def keep_versions(address: str, name: str) -> None:
    """Switch versioning on for a bucket."""
    client = client_of(address)
    client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    client.close()


def client_of(address: str) -> Any:
    """Return another client of the service."""
    import boto3

    return boto3.client(
        "s3", endpoint_url=address, region_name=KEYS["AWS_REGION"], aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
    )  # fmt: skip


@contextmanager
def settings(address: str, home: Path, **others: str) -> Iterator[dict[str, str]]:
    """Set the variables for the service while the block runs; yield them."""
    values = {**KEYS, "AWS_ENDPOINT_URL": address, "HOME": str(home), **others}
    with patch.dict("os.environ", values):
        yield values
