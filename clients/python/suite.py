"""Executes the cases of `clients/suite` with this client and prints one line for each. Asserts nothing.

Usage: suite.py <base URL> <file of cases> [<name of a case>]
"""

import base64
import hmac
import json
import re
import ssl
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import rfc8785

import custos

WORLD = json.loads((Path(__file__).resolve().parent.parent / "suite" / "world.json").read_text())
NOW_MS = 1767225600000
# Reading all authorities takes longer than most cases.
AUTHORITIES = ssl.create_default_context()
CONTROL = httpx.Client(verify=AUTHORITIES, timeout=30)


def at(value: Any, pointer: str) -> Any:
    for name in pointer.split("/")[1:]:
        name = name.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            value = value[int(name)] if name.isdecimal() and int(name) < len(value) else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value


def filled(value: Any, saved: dict[str, Any]) -> Any:
    """The value with every `${name}` replaced."""
    if isinstance(value, str):
        return re.sub(r"\$\{(\w+)\}", lambda match: str(saved[match[1]]), value)
    if isinstance(value, list):
        return [filled(each, saved) for each in value]
    if isinstance(value, dict):
        return {name: filled(each, saved) for name, each in value.items()}
    return value


class Case:
    def __init__(self, base_url: str, case: dict[str, Any]) -> None:
        self.base_url, self.case = base_url, case
        self.saved: dict[str, Any] = {}
        self.waits: list[int] = []
        self.keys = 0
        self.signers = {name: custos.key_signer(key) for name, key in WORLD["signers"].items()}

    def control(self, request: str, body: Any = None) -> Any:
        method, path = request.split(" ")
        response = CONTROL.request(method, self.base_url + path, json=body)
        response.raise_for_status()
        return response.json() if response.content else None

    def new_key(self) -> str:
        self.keys += 1
        return f"key-{self.keys}"

    def client(self) -> custos.Custos:
        settings = filled(self.case.get("client", {}), self.saved)
        options: dict[str, Any] = {
            "prefix": settings.get("prefix", "service"),
            "user_token": settings.get("user_token"),
            "signers": [self.signers[name] for name in settings.get("signers", [])],
            "request_expiry_ms": settings.get("request_expiry_ms"),
            "now_ms": lambda: settings.get("now_ms", NOW_MS) + sum(self.waits),
            "random": lambda: 0.5,
            "new_key": self.new_key,
            "sleep": lambda seconds: self.waits.append(round(seconds * 1000)),
        }
        if "retries" in settings:
            options["retries"] = settings["retries"]
        if "timeout_ms" in settings:
            options["timeout_s"] = settings["timeout_ms"] / 1000
        base_url = settings.get("base_url", self.base_url)
        secret = settings.get("app_secret", WORLD["app_secret"])
        return custos.Custos(WORLD["app_id"], secret, base_url=base_url, verify=AUTHORITIES, **options)

    def run(self, is_offline: bool) -> dict[str, Any]:
        if not is_offline:
            self.control("POST /_sandbox/reset")
            self.control("DELETE /_sandbox/requests")
        for setup in self.case.get("setup", []):
            answer = self.control(*(filled(setup[name], self.saved) for name in ("request", "body") if name in setup))
            self.save(setup, answer)
        client = self.client()
        steps = [self.outcome(client, step) for step in self.case["steps"]]
        line = {"case": self.case["name"], "steps": steps, "waits": self.waits}
        if not is_offline and self.case.get("arrived", True):
            rows = self.control("GET /_sandbox/requests?limit=1000")["data"]
            line["arrived"] = [f"{row['operation']} {row['status']}" for row in rows]
        return line

    def save(self, step: dict[str, Any], answer: Any) -> None:
        for name, pointer in step.get("save", {}).items():
            self.saved[name] = at(answer, pointer)

    def outcome(self, client: custos.Custos, step: dict[str, Any]) -> dict[str, Any]:
        step = filled(step, self.saved)
        options: dict[str, Any] = {
            name: step[name] for name in ("idempotency_key", "request_expiry_ms") if name in step
        }
        if "signers" in step:
            options["signers"] = [self.signers[name] for name in step["signers"]]
        try:
            return {"ok": getattr(self, step.get("do", "call"))(client.using(**options) if options else client, step)}
        except custos.ApiError as error:
            text = str(error).replace(f"(request {error.request_id})", "(request *)")
            facts = {"status": error.status, "code": error.code, "message": error.message, "text": text}
            return {"error": {"kind": "api", **facts}}
        except custos.UnexpectedAnswerError as error:
            return {"error": {"kind": "answer", "text": str(error).replace(error.url, "*")}}
        except custos.WebhookError:
            return {"error": {"kind": "webhook"}}
        except httpx.TimeoutException:
            return {"error": {"kind": "timeout"}}
        except httpx.TransportError:
            return {"error": {"kind": "connection"}}
        except ValueError:
            return {"error": {"kind": "argument"}}

    def request(self, client: custos.Custos, step: dict[str, Any], **query: Any) -> httpx.Request:
        path = re.sub(r"\{(\w+)\}", lambda match: quote(step["params"][match[1]], safe=""), step["path"])
        http, params = client.get_httpx_client(), {**step.get("query", {}), **query}
        return http.build_request(step["method"], path, params=params or None, json=step.get("body"))

    def call(self, client: custos.Custos, step: dict[str, Any]) -> dict[str, Any]:
        request = self.request(client, step)
        if "idempotency_header" in step:
            request.headers["service-idempotency-key"] = step["idempotency_header"]
        for _ in range(step.get("times", 1)):
            response = client.get_httpx_client().send(request)
        answer = response.json() if response.content else None
        self.save(step, answer)
        return {"status": response.status_code, "shown": [at(answer, pointer) for pointer in step.get("show", [])]}

    def list(self, client: custos.Custos, step: dict[str, Any]) -> dict[str, Any]:
        class Page:
            def __init__(self, answer: dict[str, Any]) -> None:
                self.__dict__ = answer

        def fetch(**query: Any) -> Any:
            return Page(client.get_httpx_client().send(self.request(client, step, **query)).json())

        items: list[Any] = []
        for item in custos.iterate(fetch):
            items.append([at(item, pointer) for pointer in step.get("show", [])])
            if len(items) == step.get("take"):
                break
        return {"items": items}

    def prepare(self, client: custos.Custos, step: dict[str, Any]) -> dict[str, Any]:
        request = self.request(client, step)
        payload = client.transport.prepare(request).decode()
        prefix = client.transport.options.prefix
        headers = {
            name: value for name, value in request.headers.items() if name == "authorization" or name.startswith(prefix)
        }
        signatures = headers.get(f"{prefix}-authorization-signature", "")
        return {"payload": payload, "signatures": signatures.split(",") if signatures else [], "headers": headers}

    def userSigner(self, client: custos.Custos, step: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self.signers[step["as"]], expires_at = client.user_signer(step["jwt"])
        return {"expires_at": expires_at}

    def keySigner(self, client: custos.Custos, step: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"signature": custos.key_signer(step["key"])(b"{}")}

    def __getattr__(self, name: str) -> Any:
        return {"import": self.import_wallet, "export": self.export_wallet}[name]

    def import_wallet(self, client: custos.Custos, step: dict[str, Any]) -> dict[str, Any]:
        wallet = {**step["wallet"]}
        text = wallet.pop("private_key_text", None)
        secret = bytes.fromhex(wallet.pop("private_key")) if text is None else text
        parts = {name: wallet.pop(name, "ethereum") for name in ("address", "chain_type")}
        answer = client.import_wallet(secret, {**parts, "entropy_type": "private-key"}, **wallet).to_dict()
        self.save(step, answer)
        return {"status": 200, "shown": [at(answer, pointer) for pointer in step.get("show", [])]}

    def export_wallet(self, client: custos.Custos, step: dict[str, Any]) -> dict[str, Any]:
        return {"secret": client.export_wallet(step["wallet_id"])}

    def verify(self, client: custos.Custos, step: dict[str, Any]) -> dict[str, Any]:
        at_time = int(time.time()) - step.get("age_seconds", 0)
        signed = f"{step['id']}.{at_time}.{step.get('signed_body', step['body'])}".encode()
        keys = [base64.b64decode(each.removeprefix("whsec_")) for each in step.get("signed_with", [step["secret"]])]
        signatures = [base64.b64encode(hmac.digest(key, signed, "sha256")).decode() for key in keys]
        headers: dict[str, str | None] = {
            "webhook-id": step["id"],
            "webhook-timestamp": str(at_time),
            "webhook-signature": " ".join(f"v1,{each}" for each in signatures),
            **step.get("headers", {}),
        }
        sent = {name: value for name, value in headers.items() if value is not None}
        event = custos.verify_webhook(step["secret"], sent, step["body"].encode())
        return {"id": event.id, "type": event.type}


def main() -> None:
    base_url, file, *names = sys.argv[1:]
    cases = json.loads(Path(file).read_text())
    for case in cases["cases"]:
        if not names or case["name"] in names:
            line = Case(base_url, case).run(cases.get("offline", False))
            sys.stdout.buffer.write(rfc8785.dumps(line) + b"\n")
            sys.stdout.flush()


main()
