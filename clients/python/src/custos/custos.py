"""The client: credentials, signatures, retries and errors below the generated functions."""

import asyncio
import base64
import json
import math
import random
import re
import ssl
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import Any, ParamSpec, Protocol, TypedDict, TypeVar, Unpack
from urllib.parse import quote

import httpx

from .client import Client
from .keys import Recipient, Signer, key_signer, seal, signed_payload
from .models import Wallet
from .operations import OPERATIONS

_NOT_EXECUTED = (429, 503)
_UNCERTAIN = (502, 504)
_REPEATABLE = ("GET", "PUT", "DELETE")
_LONGEST_WAIT_S = 60
# A retry with less time before its deadline gets a new one.
_LEAST_TIME_LEFT_MS = 1000
_MAX_RESPONSE_BYTES = 32 * 1024 * 1024
# A `Date` in the far future must not get deadlines signed that never end.
_MAX_CLOCK_LEAD_MS = 48 * 60 * 60 * 1000

_Outcome = httpx.Response | httpx.TransportError


class ApiError(Exception):
    """An answer of the service with a status other than success."""

    def __init__(self, response: httpx.Response) -> None:
        try:
            body = response.json()
        except ValueError:
            body = None
        if not isinstance(body, dict) or not isinstance(body.get("error"), str):
            body = {"error": response.reason_phrase}
        self.status = response.status_code
        self.code: str | None = body.get("code")
        self.message: str = body["error"]
        self.data: dict[str, Any] | None = body.get("data")
        self.request_id: str | None = response.headers.get("x-request-id")
        self.headers = response.headers
        # `pickle` makes the error of its arguments.
        super().__init__(response)

    def __str__(self) -> str:
        code = f" {self.code}" if self.code else ""
        hint = f"; hint: {self.data['hint']}" if self.data and "hint" in self.data else ""
        request = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.status}{code}: {self.message.removesuffix('.')}{hint}{request}"


class UnexpectedAnswerError(Exception):
    """A status of success that is not from the API, such as a page of another server at a wrong base URL."""

    def __init__(self, status: int, content_type: str, url: str) -> None:
        self.status, self.content_type, self.url = status, content_type, url
        super().__init__(status, content_type, url)

    def __str__(self) -> str:
        what = f"{self.status} {self.content_type} from {self.url}"
        return f"{what} is not an answer of the API; is the base URL right?"


def _checked(response: httpx.Response, request: httpx.Request) -> httpx.Response:
    content_type = response.headers.get("content-type", "without a type").partition(";")[0]
    if response.status_code == 204 or content_type == "text/csv":
        return response
    try:
        if content_type == "application/json":
            json.loads(response.content)
            return response
    except ValueError:
        # A proxy can call its page JSON.
        pass
    raise UnexpectedAnswerError(response.status_code, content_type, str(request.url))


@dataclass(frozen=True)
class Options:
    app_id: str
    app_secret: str | None = field(default=None, repr=False)
    # The access token of a user, instead of the app secret.
    user_token: str | None = field(default=None, repr=False)
    prefix: str = "service"
    # The owners who sign.
    signers: Sequence[Signer] = ()
    idempotency_key: str | None = None
    request_expiry_ms: int | None = None
    retries: int = 3
    # These can be replaced in tests.
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    random: Callable[[], float] = random.random
    new_key: Callable[[], str] = lambda: str(uuid.uuid4())
    sleep: Callable[[float], Any] = time.sleep
    sleep_async: Callable[[float], Awaitable[Any]] = asyncio.sleep

    def __post_init__(self) -> None:
        _refuse_no_numbers(retries=self.retries, request_expiry_ms=self.request_expiry_ms)


def _refuse_no_numbers(**options: float | None) -> None:
    """With NaN, no comparison would end the retries."""
    for name, value in options.items():
        if value is not None and not math.isfinite(value):
            raise ValueError(f"{name} must be a finite number")


class OptionalOptions(TypedDict, total=False):
    """The options that `Custos` and `using` take by name."""

    user_token: str | None
    prefix: str
    signers: Sequence[Signer]
    idempotency_key: str | None
    request_expiry_ms: int | None
    retries: int
    now_ms: Callable[[], int]
    random: Callable[[], float]
    new_key: Callable[[], str]
    sleep: Callable[[float], Any]
    sleep_async: Callable[[float], Awaitable[Any]]


class _Limited(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that is not endless: the limits of httpx are for each wait."""

    def __init__(self, body: Any, deadline: float) -> None:
        self.body, self.deadline, self.received = body, deadline, 0

    def _check(self, part: bytes) -> None:
        self.received += len(part)
        if self.received > _MAX_RESPONSE_BYTES:
            raise httpx.ReadError(f"the response exceeds {_MAX_RESPONSE_BYTES} bytes")
        if time.monotonic() > self.deadline:
            raise httpx.ReadTimeout("the body did not end in time")

    def __iter__(self) -> Iterator[bytes]:
        try:
            for part in self.body:
                self._check(part)
                yield part
        finally:
            self.close()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self.body:
                self._check(part)
                yield part
        finally:
            await self.aclose()

    def close(self) -> None:
        self.body.close()

    async def aclose(self) -> None:
        await self.body.aclose()


def _deadline_of(request: httpx.Request) -> float:
    limit_s = request.extensions.get("timeout", {}).get("read")
    return math.inf if limit_s is None else time.monotonic() + limit_s


def _copy_of(request: httpx.Request) -> httpx.Request:
    """A request to prepare. The caller's own has no key afterwards, so it can be sent again as another call."""
    return httpx.Request(
        request.method, request.url, headers=request.headers, stream=request.stream, extensions=request.extensions
    )


class _Addresses:
    """Refuses paths of which httpx would make the path of another resource."""

    def build_request(self, method: str, url: httpx.URL | str, **options: Any) -> httpx.Request:
        path = str(url).partition("?")[0]
        if path.startswith("/") and not {"", ".", "..", "None"}.isdisjoint(path.split("/")[1:]):
            raise ValueError(f"a parameter of the path {path} is empty, None or dots")
        return super().build_request(method, url, **options)  # type: ignore[misc, no-any-return]


class _SyncClient(_Addresses, httpx.Client):
    pass


class _AsyncClient(_Addresses, httpx.AsyncClient):
    pass


class Transport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Prepares each request, sends it until there is an answer, and raises ApiError."""

    def __init__(
        self, options: Options, base_path: str, sync: httpx.BaseTransport, unblocking: httpx.AsyncBaseTransport
    ):
        self.options, self.base_path, self.sync, self.unblocking = options, base_path, sync, unblocking
        self._skew_ms = 0

    def prepare(self, request: httpx.Request) -> bytes:
        """Adds the service headers and signatures. Returns the payload that owners sign."""
        return self._prepare(request, self._given_key(request))

    def _given_key(self, request: httpx.Request) -> str | None:
        """The idempotency key that the caller chose, by an option or by the header."""
        return self.options.idempotency_key or request.headers.get(f"{self.options.prefix}-idempotency-key")

    def _prepare(self, request: httpx.Request, key: str | None) -> bytes:
        """As `prepare`, with an idempotency key, or else with a new one."""
        options, headers, accepted = self.options, request.headers, self._accepted(request)
        credentials = base64.b64encode(f"{options.app_id}:{options.app_secret}".encode()).decode()
        headers["authorization"] = f"Bearer {options.user_token}" if options.user_token else f"Basic {credentials}"
        signed = {f"{options.prefix}-app-id": options.app_id}
        if "idempotency-key" in accepted:
            signed[f"{options.prefix}-idempotency-key"] = key or options.new_key()
        if "request-expiry" in accepted and options.request_expiry_ms is not None:
            deadline_ms = options.now_ms() + self._skew_ms + options.request_expiry_ms
            signed[f"{options.prefix}-request-expiry"] = str(deadline_ms)
        headers.update(signed)
        body = request.content if headers.get("content-type") == "application/json" else b""
        payload = signed_payload(request.method, str(request.url), body, signed)
        if "authorization-signature" in accepted and options.signers:
            headers[f"{options.prefix}-authorization-signature"] = ",".join(sign(payload) for sign in options.signers)
        return payload

    def _accepted(self, request: httpx.Request) -> Sequence[str]:
        """The service headers that the operation lists, without their prefix. It refuses others."""
        path = request.url.raw_path.decode().split("?")[0].removeprefix(self.base_path)
        for method, pattern, names in OPERATIONS:
            if method == request.method and re.fullmatch(pattern, path):
                return names
        return ()

    def _attempts(self, request: httpx.Request) -> Generator[float | None, _Outcome | None, httpx.Response]:
        """Yields the seconds to wait, or None to have the request sent, and receives the outcome."""
        assumed_skew_ms = self._skew_ms
        name, expiry = (f"{self.options.prefix}-{name}" for name in ("idempotency-key", "request-expiry"))
        given = self._given_key(request)
        self._prepare(request, given)
        key = request.headers.get(name)
        is_repeatable = key is not None or request.method in _REPEATABLE
        failures, was_corrected = 0, False
        while True:
            outcome = yield None
            assert outcome is not None
            if isinstance(outcome, httpx.Response) and outcome.status_code < 300:
                return _checked(outcome, request)
            if not was_corrected and self._corrects_clock(outcome, assumed_skew_ms):
                was_corrected = True
                # The refusal may have used up the key. After a retry, the key stays: an attempt may have been executed.
                self._prepare(request, key if failures else given)
                key = request.headers.get(name)
                continue
            failures += 1
            wait = self._wait(outcome, failures, is_repeatable)
            if wait is None:
                raise outcome if isinstance(outcome, httpx.TransportError) else ApiError(outcome)
            yield wait
            deadline_ms = float(request.headers.get(expiry, "inf"))
            if deadline_ms - self.options.now_ms() - self._skew_ms < _LEAST_TIME_LEFT_MS:
                self._prepare(request, key)

    def _wait(self, outcome: _Outcome, failures: int, is_repeatable: bool) -> float | None:
        """The seconds before the next attempt; None if there is none."""
        status = outcome.status_code if isinstance(outcome, httpx.Response) else None
        is_uncertain = status is None or status in _UNCERTAIN
        if failures > self.options.retries or not (status in _NOT_EXECUTED or is_uncertain and is_repeatable):
            return None
        after = outcome.headers.get("retry-after", "") if isinstance(outcome, httpx.Response) else ""
        if not re.fullmatch("[0-9]+", after):
            return int(min(8000, 500 * 2 ** (failures - 1)) * (0.5 + 0.5 * self.options.random())) / 1000
        # `float`, because `int` refuses thousands of digits.
        return None if float(after) > _LONGEST_WAIT_S else int(after) + int(250 * self.options.random()) / 1000

    def _corrects_clock(self, outcome: _Outcome, assumed_ms: int) -> bool:
        if not isinstance(outcome, httpx.Response) or ApiError(outcome).code != "request_expired":
            return False
        try:
            server_ms = parsedate_to_datetime(outcome.headers.get("date", "")).timestamp() * 1000
        except ValueError:
            return False
        skew_ms = int(server_ms) - self.options.now_ms()
        if abs(skew_ms - assumed_ms) <= 2000 or skew_ms > _MAX_CLOCK_LEAD_MS:
            return False
        self._skew_ms = skew_ms
        return True

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request = _copy_of(request)
        request.read()
        attempts = self._attempts(request)
        outcome: _Outcome | None = None
        while True:
            try:
                wait = attempts.send(outcome)
            except StopIteration as end:
                response: httpx.Response = end.value
                return response
            if wait is not None:
                self.options.sleep(wait)
                continue
            try:
                deadline = _deadline_of(request)
                outcome = self.sync.handle_request(request)
                outcome.stream = _Limited(outcome.stream, deadline)
                outcome.read()
            except httpx.TransportError as error:
                outcome = error

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request = _copy_of(request)
        await request.aread()
        attempts = self._attempts(request)
        outcome: _Outcome | None = None
        while True:
            try:
                wait = attempts.send(outcome)
            except StopIteration as end:
                response: httpx.Response = end.value
                return response
            if wait is not None:
                await self.options.sleep_async(wait)
                continue
            try:
                deadline = _deadline_of(request)
                outcome = await self.unblocking.handle_async_request(request)
                outcome.stream = _Limited(outcome.stream, deadline)
                await outcome.aread()
            except httpx.TransportError as error:
                outcome = error


class Custos(Client):
    """A client for the generated functions: `create_wallet.sync(client=Custos(…), body=…)`. Options are those above."""

    def __init__(
        self,
        app_id: str,
        app_secret: str | None = None,
        *,
        base_url: str,
        verify: ssl.SSLContext | bool = True,
        timeout_s: float = 30,
        **options: Unpack[OptionalOptions],
    ) -> None:
        _refuse_no_numbers(timeout_s=timeout_s)
        base_path = httpx.URL(base_url).path.rstrip("/")
        # Reading all authorities takes time, so both share them.
        context = verify if isinstance(verify, ssl.SSLContext) else httpx.create_ssl_context(verify)
        sync, unblocking = httpx.HTTPTransport(verify=context), httpx.AsyncHTTPTransport(verify=context)
        self._connect(
            Transport(Options(app_id, app_secret, **options), base_path, sync, unblocking), base_url, timeout_s
        )

    def _connect(self, transport: Transport, base_url: str, timeout_s: float) -> None:
        super().__init__(base_url=base_url, raise_on_unexpected_status=True)
        self.transport, self.base_url, self.timeout_s = transport, base_url, timeout_s
        self.set_httpx_client(_SyncClient(base_url=base_url, timeout=timeout_s, transport=transport))
        self.set_async_httpx_client(_AsyncClient(base_url=base_url, timeout=timeout_s, transport=transport))

    def using(self, **options: Unpack[OptionalOptions]) -> "Custos":
        """This client with other options, such as `signers` or `idempotency_key`. The connections are shared."""
        client = object.__new__(Custos)
        was = self.transport
        transport = Transport(replace(was.options, **options), was.base_path, was.sync, was.unblocking)
        client._connect(transport, self.base_url, self.timeout_s)
        return client

    def user_signer(self, user_jwt: str) -> tuple[Signer, int]:
        """A signer for a user with a token, and when it expires in Unix milliseconds."""
        recipient = Recipient()
        body = {"user_jwt": user_jwt, "encryption_type": "HPKE", "recipient_public_key": recipient.public_key}
        answer = self.get_httpx_client().post("/v1/wallets/authenticate", json=body).json()
        sealed = answer["encrypted_authorization_key"]
        return key_signer(recipient.open(sealed["encapsulated_key"], sealed["ciphertext"])), answer["expires_at"]

    def import_wallet(self, secret: bytes, wallet: dict[str, Any], **fields: Any) -> Wallet:
        """Imports a private key, or a phrase. `wallet` has its `address`, `chain_type` and `entropy_type`."""
        # The message is without the value, which is a key.
        if not isinstance(secret, bytes) or not secret:
            raise ValueError("the secret must be bytes, such as bytes.fromhex(text), and not empty")
        http, wallet = self.get_httpx_client(), {"encryption_type": "HPKE", **wallet}
        key = http.post("/v1/wallets/import/init", json=wallet).json()["encryption_public_key"]
        submission = {**fields, "wallet": {**wallet, **seal(secret, key)}}
        return Wallet.from_dict(http.post("/v1/wallets/import/submit", json=submission).json())

    def export_wallet(self, wallet_id: str, **fields: Any) -> str:
        """The private key of a wallet; with `export_seed_phrase=True` its phrase. The owner signs."""
        recipient = Recipient()
        body = {**fields, "encryption_type": "HPKE", "recipient_public_key": recipient.public_key}
        sealed = self.get_httpx_client().post(f"/v1/wallets/{quote(wallet_id, safe='')}/export", json=body).json()
        return recipient.open(sealed["encapsulated_key"], sealed["ciphertext"])


_P = ParamSpec("_P")
_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class _Page(Protocol):
    @property
    def next_cursor(self) -> str | None: ...


class _DataPage(_Page, Protocol[_T_co]):
    @property
    def data(self) -> Sequence[_T_co]: ...


class _ItemsPage(_Page, Protocol[_T_co]):
    @property
    def items(self) -> Sequence[_T_co]: ...


class _TransactionsPage(_Page, Protocol[_T_co]):
    @property
    def transactions(self) -> Sequence[_T_co]: ...


_AnyPage = _DataPage[_T] | _ItemsPage[_T] | _TransactionsPage[_T]


def _items_of(page: _AnyPage[_T]) -> Sequence[_T]:
    items: Sequence[_T] = next(getattr(page, name) for name in ("data", "items", "transactions") if hasattr(page, name))
    return items


def iterate(fetch: Callable[_P, _AnyPage[_T]], *args: _P.args, **query: _P.kwargs) -> Iterator[_T]:
    """Everything in a list, page after page: `iterate(list_wallets.sync, client=client, limit=50)`."""
    while True:
        page = fetch(*args, **query)
        yield from _items_of(page)
        if not page.next_cursor:
            return
        query["cursor"] = page.next_cursor


async def iterate_async(
    fetch: Callable[_P, Awaitable[_AnyPage[_T]]], *args: _P.args, **query: _P.kwargs
) -> AsyncIterator[_T]:
    """As `iterate`, with a function such as `list_wallets.asyncio`."""
    while True:
        page = await fetch(*args, **query)
        for item in _items_of(page):
            yield item
        if not page.next_cursor:
            return
        query["cursor"] = page.next_cursor
