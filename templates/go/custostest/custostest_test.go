package custostest

import (
	"errors"
	"strings"
	"testing"
	"time"
)

type object = map[string]any

var message = object{"method": "personal_sign", "params": object{"message": "Hello", "encoding": "utf-8"}}

func TestSandbox(t *testing.T) {
	sandbox := Start(t)

	t.Run("a wallet is created and signs", func(t *testing.T) {
		reset(t, sandbox)
		var wallet struct{ ID string }
		if err := sandbox.Call("POST", "/v1/wallets", object{"chain_type": "ethereum"}, &wallet); err != nil {
			t.Fatal(err)
		}
		var signed struct{ Data struct{ Signature string } }
		if err := sandbox.Call("POST", "/v1/wallets/"+wallet.ID+"/rpc", message, &signed); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(signed.Data.Signature, "0x") {
			t.Fatalf("expected a signature, got %q", signed.Data.Signature)
		}
	})

	t.Run("a wallet with an owner needs the owner's signature", func(t *testing.T) {
		reset(t, sandbox)
		var refused *Refused
		err := sandbox.Call("POST", "/v1/wallets/ext_wal_alice/rpc", message, nil)
		if !errors.As(err, &refused) || refused.Status != 401 || !strings.Contains(refused.Data.Hint, "Alice") {
			t.Fatalf("expected a refusal that names Alice, got %v", err)
		}
	})

	t.Run("a transfer settles", func(t *testing.T) {
		reset(t, sandbox)
		var wallet struct{ ID, Address string }
		if err := sandbox.Call("GET", "/v1/wallets/ext_wal_acme-ethereum", nil, &wallet); err != nil {
			t.Fatal(err)
		}
		funds := object{"chain": "base", "address": wallet.Address, "amount": "1"}
		if err := sandbox.Call("POST", "/_sandbox/faucet", funds, nil); err != nil {
			t.Fatal(err)
		}
		transfer := object{
			"source":      object{"asset": "eth", "chain": "base", "amount": "0.25"},
			"destination": object{"address": "0x742D35CC6634c0532925A3b844BC9E7595F0BEb0"},
		}
		if err := sandbox.Call("POST", "/v1/wallets/"+wallet.ID+"/transfer", transfer, nil); err != nil {
			t.Fatal(err)
		}
		if err := sandbox.Advance(time.Minute); err != nil {
			t.Fatal(err)
		}
		var events struct{ Data []struct{ Type string } }
		if err := sandbox.Call("GET", "/_sandbox/events?type=wallet_action.transfer.succeeded", nil, &events); err != nil {
			t.Fatal(err)
		}
		if len(events.Data) != 1 {
			t.Fatalf("expected one event, got %d", len(events.Data))
		}
	})
}

func reset(t *testing.T, sandbox *Sandbox) {
	t.Helper()
	if err := sandbox.Reset(); err != nil {
		t.Fatal(err)
	}
}
