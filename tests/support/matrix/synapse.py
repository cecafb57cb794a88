"""A real Matrix server, Synapse, in a process that can be killed, with users for a test."""

import asyncio
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import httpx2

SERVER_NAME = "test"
_SETTINGS = """
server_name: {name}
pid_file: {folder}/pid
signing_key_path: {folder}/signing.key
media_store_path: {folder}/media
database: {{name: sqlite3, args: {{database: {folder}/homeserver.db}}}}
listeners: [{{port: {port}, type: http, bind_addresses: [127.0.0.1], resources: [{{names: [client]}}]}}]
registration_shared_secret: only-for-this-test
macaroon_secret_key: only-for-this-test-too
report_stats: false
trusted_key_servers: []
federation_domain_whitelist: []
rc_message: {{per_second: 1000, burst_count: 1000}}
rc_joins: {{local: {{per_second: 1000, burst_count: 1000}}}}
rc_login: {{address: {{per_second: 1000, burst_count: 1000}}, account: {{per_second: 1000, burst_count: 1000}}}}
rc_invites: {{per_room: {{per_second: 1000, burst_count: 1000}}, per_user: {{per_second: 1000, burst_count: 1000}}}}
"""


class Synapse:
    """A server over a folder, which can be killed and started again."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self._folder = programs, folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        folder.mkdir()
        self._config = folder / "homeserver.yaml"
        self._config.write_text(_SETTINGS.format(name=SERVER_NAME, folder=folder, port=self.port))
        subprocess.run([*self._command(), "--generate-keys"], check=True, capture_output=True, cwd=folder)
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Address of the server."""
        return f"http://127.0.0.1:{self.port}"

    def _command(self) -> list[str]:
        return [str(self._programs / "python"), "-m", "synapse.app.homeserver", "-c", str(self._config)]

    async def start(self) -> None:
        """Start the server, and wait until it answers."""
        self.process = await asyncio.to_thread(self._begun)
        async with httpx2.AsyncClient(trust_env=False) as http:
            for _ in range(600):
                assert self.process.poll() is None, (self._folder / "log").read_text()[-2000:]
                try:
                    if (await http.get(f"{self.address}/health")).status_code == 200:
                        return
                except httpx2.TransportError:
                    await asyncio.sleep(0.1)
        raise AssertionError("Synapse does not answer")

    def _begun(self) -> subprocess.Popen[bytes]:
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(self._command(), stdout=log, stderr=log, cwd=self._folder)

    def kill(self) -> None:
        """End the server without a chance to do anything."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(60)

    async def user(self, name: str) -> tuple[str, str]:
        """Register a user, and return its id and its token."""
        command = [str(self._programs / "register_new_matrix_user"), "-c", str(self._config), "-u", name, "-p", "pass",
                   "--no-admin", self.address]  # fmt: skip
        await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
        login = {"type": "m.login.password", "identifier": {"type": "m.id.user", "user": name}, "password": "pass"}
        async with httpx2.AsyncClient(trust_env=False, timeout=60) as http:
            answer = (await http.post(f"{self.address}/_matrix/client/v3/login", json=login)).json()
        return answer["user_id"], answer["access_token"]


class Person:
    """A user that says things, and asks again until the server answers."""

    def __init__(self, address: str, token: str) -> None:
        self._address, self._headers = address, {"Authorization": f"Bearer {token}"}

    async def call(self, method: str, path: str, body: object = None, **query: Any) -> Any:
        """Send a request of the client-server API."""
        async with httpx2.AsyncClient(headers=self._headers, timeout=60, trust_env=False) as http:
            for _ in range(600):
                try:
                    url = f"{self._address}/_matrix/client/v3{path}"
                    answer = await http.request(method, url, json=body, params=query)
                except httpx2.TransportError:
                    await asyncio.sleep(0.1)
                    continue
                assert answer.status_code == 200, answer.text
                return answer.json()
        raise AssertionError("Matrix does not answer")

    async def say(self, room: str, text: str) -> None:
        """Say something once: its words are the key."""
        content = {"msgtype": "m.text", "body": text}
        await self.call("PUT", f"/rooms/{room}/send/m.room.message/{text.replace(' ', '-')}", content)

    async def said(self, room: str) -> list[tuple[str, str]]:
        """Return all messages of a room, with their senders, oldest first."""
        found: list[tuple[str, str]] = []
        page: dict[str, Any] = {}
        while True:
            where = {"from": page["end"]} if page else {}
            page = await self.call("GET", f"/rooms/{room}/messages", dir="f", limit=100, **where)
            found += [(e["sender"], e["content"]["body"]) for e in page["chunk"] if e["type"] == "m.room.message"]
            if not page.get("end") or not page["chunk"]:
                return found
