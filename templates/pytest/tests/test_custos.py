import pytest
from conftest import Refused, Sandbox

MESSAGE = {"method": "personal_sign", "params": {"message": "Hello", "encoding": "utf-8"}}


def test_a_wallet_is_created_and_signs(sandbox: Sandbox) -> None:
    wallet = sandbox.call("POST", "/v1/wallets", {"chain_type": "ethereum"})
    signed = sandbox.call("POST", f"/v1/wallets/{wallet['id']}/rpc", MESSAGE)
    assert signed["data"]["signature"].startswith("0x")


def test_a_wallet_with_an_owner_needs_the_owners_signature(sandbox: Sandbox) -> None:
    with pytest.raises(Refused) as refused:
        sandbox.call("POST", "/v1/wallets/ext_wal_alice/rpc", MESSAGE)
    assert refused.value.status == 401
    assert "Alice" in refused.value.hint


def test_a_transfer_settles(sandbox: Sandbox) -> None:
    wallet = sandbox.call("GET", "/v1/wallets/ext_wal_acme-ethereum")
    funds = {"chain": "base", "address": wallet["address"], "amount": "1"}
    sandbox.call("POST", "/_sandbox/faucet", funds)
    transfer = {
        "source": {"asset": "eth", "chain": "base", "amount": "0.25"},
        "destination": {"address": "0x742D35CC6634c0532925A3b844BC9E7595F0BEb0"},
    }
    sandbox.call("POST", f"/v1/wallets/{wallet['id']}/transfer", transfer)
    sandbox.advance(60)
    assert len(sandbox.events("wallet_action.transfer.succeeded")) == 1
