"""A client for Custos."""

from .custos import ApiError, Custos, UnexpectedAnswerError, iterate, iterate_async
from .keys import Recipient, Signer, WebhookError, WebhookEvent, key_signer, seal, signed_payload, verify_webhook

__all__ = [
    "ApiError",
    "Custos",
    "Recipient",
    "Signer",
    "UnexpectedAnswerError",
    "WebhookError",
    "WebhookEvent",
    "iterate",
    "iterate_async",
    "key_signer",
    "seal",
    "signed_payload",
    "verify_webhook",
]
