"""Keys of owners, and secrets on their way in and out: P-256 signatures, HPKE, webhooks."""

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import rfc8785
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_der_private_key,
    load_pem_private_key,
)
from standardwebhooks import Webhook, WebhookVerificationError

# Returns the signature of a payload: DER in base64. A key that lives elsewhere, as in a KMS, is such a function too.
Signer = Callable[[bytes], str]

_SUITE = Suite(KEM.P256, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)
_POINT_BYTES = 65


def key_signer(key: str | ec.EllipticCurvePrivateKey) -> Signer:
    """A signer with a P-256 key: PKCS #8 as PEM or as base64 of the DER, or a key of `cryptography`."""
    if not isinstance(key, str):
        private: object = key
    elif "-----BEGIN" in key:
        private = load_pem_private_key(key.encode(), password=None)
    else:
        private = load_der_private_key(base64.b64decode(key), password=None)
    if not isinstance(private, ec.EllipticCurvePrivateKey) or not isinstance(private.curve, ec.SECP256R1):
        raise ValueError("expected a private key on the curve P-256")
    algorithm = ec.ECDSA(hashes.SHA256(), deterministic_signing=True)
    return lambda payload: base64.b64encode(private.sign(payload, algorithm)).decode()


def signed_payload(method: str, url: str, body: bytes, headers: Mapping[str, str]) -> bytes:
    """The canonical JSON (RFC 8785) that owners sign. `headers` has the service headers that are signed."""
    payload: dict[str, Any] = {"version": 1, "method": method, "url": url, "headers": dict(headers)}
    return rfc8785.dumps({**payload, "body": json.loads(body)} if body else payload)


class Recipient:
    """A fresh key pair to which the service encrypts one secret."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        spki = self._key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        self.public_key = base64.b64encode(spki).decode()

    def open(self, encapsulated_key: str, ciphertext: str) -> str:
        """The secret in the `encapsulated_key` and `ciphertext` of a response."""
        sealed = base64.b64decode(encapsulated_key) + base64.b64decode(ciphertext)
        return _SUITE.decrypt(sealed, self._key).decode()


def seal(secret: bytes, encryption_public_key: str) -> dict[str, str]:
    """Encrypts a secret to the key of `initWalletImport`: `encapsulated_key` and `ciphertext` of the submission."""
    recipient = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), base64.b64decode(encryption_public_key))
    sealed = _SUITE.encrypt(secret, recipient)
    parts = {"encapsulated_key": sealed[:_POINT_BYTES], "ciphertext": sealed[_POINT_BYTES:]}
    return {name: base64.b64encode(part).decode() for name, part in parts.items()}


class WebhookError(Exception):
    """The webhook was changed, is too old, or was signed with another secret; or the secret is empty or malformed."""


@dataclass(frozen=True)
class WebhookEvent:
    # The same for every delivery of an event: drop what you have already seen.
    id: str
    type: str
    payload: dict[str, Any]


class Headers(Protocol):
    """The headers of a request, as the frameworks have them."""

    def items(self) -> Iterable[tuple[str, str]]: ...


def verify_webhook(secret: str, headers: Headers, body: bytes | str) -> WebhookEvent:
    """The event in the bytes that arrived. Raises WebhookError if they are not genuine."""
    by_name = {name.lower(): value for name, value in headers.items()}
    try:
        key = base64.b64decode((secret or "").strip().removeprefix("whsec_"), validate=True)
    except ValueError:
        raise WebhookError("the secret is malformed") from None
    if not key:
        raise WebhookError("the secret is empty")
    try:
        payload = Webhook(key).verify(body, by_name)
    except (WebhookVerificationError, ValueError) as error:
        raise WebhookError(str(error)) from error
    if not isinstance(payload, dict) or not isinstance(payload.get("type"), str):
        raise WebhookError("the body is not an event")
    return WebhookEvent(by_name["webhook-id"], payload["type"], payload)
