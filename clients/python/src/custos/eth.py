"""A wallet as an account of `eth_account`, for web3.py. Needs the extra `eth`."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from eth_account._utils.legacy_transactions import Transaction
from eth_account.datastructures import SignedMessage, SignedTransaction
from eth_account.messages import SignableMessage, _hash_eip191_message, encode_typed_data
from eth_account.signers.local import LocalAccount
from eth_account.typed_transactions.typed_transaction import TypedTransaction
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak
from hexbytes import HexBytes

from .custos import Custos

_FIELDS = {
    "chainId": "chain_id",
    "data": "data",
    "from": "from",
    "gas": "gas_limit",
    "gasPrice": "gas_price",
    "maxFeePerGas": "max_fee_per_gas",
    "maxPriorityFeePerGas": "max_priority_fee_per_gas",
    "nonce": "nonce",
    "to": "to",
    "value": "value",
}


class WalletAccount(LocalAccount):
    """Signs with a wallet of the service, whose key never leaves it. The signers of the client authorize that."""

    def __init__(self, client: Custos, wallet_id: str) -> None:
        self._client, self.wallet_id = client, wallet_id
        self._path = f"/v1/wallets/{quote(wallet_id, safe='')}"
        wallet = client.get_httpx_client().get(self._path).json()
        self._address = to_checksum_address(wallet["address"])

    @property
    def key(self) -> bytes:
        raise NotImplementedError("the private key is in the service")

    def sign_transaction(self, transaction_dict: Mapping[str, Any], blobs: Any = None) -> SignedTransaction:
        unknown = set(transaction_dict) - set(_FIELDS) - {"type"}
        if unknown or blobs is not None:
            raise ValueError(f"the service does not sign transactions with {sorted(unknown) or 'blobs'}")
        transaction = {_FIELDS[name]: _wire(value) for name, value in transaction_dict.items() if name in _FIELDS}
        if "type" in transaction_dict:
            transaction["type"] = int(str(transaction_dict["type"]), 0)
        raw = HexBytes(self._rpc("eth_signTransaction", {"transaction": transaction})["signed_transaction"])
        signed = TypedTransaction.from_bytes(raw) if raw[0] < 0x80 else Transaction.from_bytes(raw)
        parts = signed.as_dict() if isinstance(signed, TypedTransaction) else signed
        r, s, v = (int(parts[name]) for name in "rsv")
        return SignedTransaction(raw_transaction=raw, hash=HexBytes(keccak(raw)), r=r, s=s, v=v)

    def sign_message(self, signable_message: SignableMessage) -> SignedMessage:
        digest = HexBytes(_hash_eip191_message(signable_message))
        if signable_message.version != b"E":
            return self.unsafe_sign_hash(digest)
        message = HexBytes(signable_message.body).to_0x_hex()
        answer = self._rpc("personal_sign", {"message": message, "encoding": "hex"})
        return _signed(digest, answer["signature"])

    def sign_typed_data(
        self,
        domain_data: dict[str, Any] | None = None,
        message_types: dict[str, Any] | None = None,
        message_data: dict[str, Any] | None = None,
        full_message: dict[str, Any] | None = None,
    ) -> SignedMessage:
        signable = encode_typed_data(domain_data, message_types, message_data, full_message)
        if full_message is None:
            message_types = message_types or {}
            members = {member["type"].split("[")[0] for fields in message_types.values() for member in fields}
            [primary_type] = set(message_types) - members - {"EIP712Domain"}
            full_message = {
                "domain": domain_data,
                "types": message_types,
                "primaryType": primary_type,
                "message": message_data,
            }
        typed_data = {name: full_message[name] for name in ("domain", "types", "message")}
        typed_data["primary_type"] = full_message["primaryType"]
        answer = self._rpc("eth_signTypedData_v4", {"typed_data": _wire(typed_data)})
        return _signed(HexBytes(_hash_eip191_message(signable)), answer["signature"])

    def unsafe_sign_hash(self, message_hash: Any) -> SignedMessage:
        digest = HexBytes(message_hash)
        return _signed(digest, self._rpc("secp256k1_sign", {"hash": digest.to_0x_hex()})["signature"])

    def _rpc(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        http, body = self._client.get_httpx_client(), {"method": method, "params": params}
        data: dict[str, Any] = http.post(f"{self._path}/rpc", json=body).json()["data"]
        return data


def _wire(value: Any) -> Any:
    if isinstance(value, bytes):
        return HexBytes(value).to_0x_hex()
    if isinstance(value, int) and not isinstance(value, bool):
        return hex(value) if value >= 2**53 else value
    if isinstance(value, Mapping):
        return {name: _wire(each) for name, each in value.items()}
    return [_wire(each) for each in value] if isinstance(value, list | tuple) else value


def _signed(digest: HexBytes, signature: str) -> SignedMessage:
    raw = HexBytes(signature)
    r, s = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:64], "big")
    return SignedMessage(message_hash=digest, r=r, s=s, v=raw[64], signature=raw)
