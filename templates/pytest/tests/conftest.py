"""A sandbox for tests: one for the whole run, and each test gets it as it started.

`CUSTOS_COMMAND` is how Custos is started here, by default `npx custos`. Under `npx custos exec -- pytest`, the tests
use the sandbox of that command.
"""

import base64
import json
import os
import shlex
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Iterator

import pytest

START_SECONDS = 60
CALL_SECONDS = 60


class Refused(Exception):
    """An error response. Its hint says what was wrong with the request."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        self.status = status
        self.code = body.get("code")
        self.hint = (body.get("data") or {}).get("hint")
        super().__init__(f"{status} {self.code}: {body.get('error')} ({self.hint})")


class Sandbox:
    """A running sandbox. Point your own client to `base_url`, with `app_id`, `app_secret` and `ca_file`."""

    def __init__(self, base_url: str, app_id: str, app_secret: str, ca_file: str) -> None:
        self.base_url = base_url
        self.app_id = app_id
        self.app_secret = app_secret
        self.ca_file = ca_file
        self._tls = ssl.create_default_context(cafile=ca_file)

    def call(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        """Calls the API as the app: `sandbox.call("POST", "/v1/wallets", {"chain_type": "ethereum"})`."""
        credentials = base64.b64encode(f"{self.app_id}:{self.app_secret}".encode()).decode()
        own = {
            "authorization": f"Basic {credentials}",
            "service-app-id": self.app_id,
            "content-type": "application/json",
        }
        data = None if body is None else json.dumps(body).encode()
        url = self.base_url + path
        request = urllib.request.Request(url, data=data, method=method, headers=own | (headers or {}))
        try:
            with urllib.request.urlopen(request, timeout=CALL_SECONDS, context=self._tls) as response:
                text = response.read()
        except urllib.error.HTTPError as error:
            raise Refused(error.code, json.loads(error.read())) from None
        return json.loads(text) if text else None

    def reset(self) -> None:
        """Returns to the state after the start."""
        self.call("POST", "/_sandbox/reset")

    def advance(self, seconds: int) -> None:
        """Moves the clock. What is due by then has run when this returns."""
        self.call("PUT", "/_sandbox/clock", {"advance_ms": seconds * 1000})

    def events(self, event_type: str) -> list[dict[str, Any]]:
        """Returns the events of a type, oldest first."""
        return self.call("GET", f"/_sandbox/events?type={event_type}")["data"]


@pytest.fixture(scope="session")
def started_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """The sandbox of this run, as the test before has left it."""
    env = os.environ
    if "CUSTOS_BASE_URL" in env:
        names = ["CUSTOS_BASE_URL", "CUSTOS_APP_ID", "CUSTOS_APP_SECRET", "CUSTOS_CA_FILE"]
        yield Sandbox(*(env[name] for name in names))
        return
    ready_file: Path = tmp_path_factory.mktemp("custos") / "ready.json"
    command = shlex.split(env.get("CUSTOS_COMMAND", "npx custos"))
    options = ["--port", "0", "--seed", "test", "--seed-data", "--quiet", "--ready-file", str(ready_file)]
    process = subprocess.Popen([*command, "sandbox", *options])
    pid = process.pid
    try:
        until = time.monotonic() + START_SECONDS
        while not ready_file.exists():
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"`{shlex.join(command)} sandbox` did not start")
            time.sleep(0.05)
        ready = json.loads(ready_file.read_text())
        # npx starts another process, which is the sandbox.
        pid = ready["pid"]
        yield Sandbox(ready["base_url"], ready["app_id"], ready["app_secret"], ready["ca_file"])
    finally:
        if process.poll() is None:
            os.kill(pid, signal.SIGTERM)
            process.wait(10)


@pytest.fixture
def sandbox(started_sandbox: Sandbox) -> Sandbox:
    """The sandbox as it started."""
    started_sandbox.reset()
    return started_sandbox
