// Package ethsigner makes a wallet of the service sign for go-ethereum.
package ethsigner

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/url"

	custos "custos.example/client"
	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// TransactOpts returns options with which bindings and contracts send transactions of a wallet. The key never leaves
// the service. `editors` go with each request for a signature, such as SignedBy.
func TransactOpts(ctx context.Context, client *custos.Client, walletID string, chainID *big.Int, editors ...custos.RequestEditorFn) (*bind.TransactOpts, error) {
	if chainID == nil {
		return nil, errors.New("transactions need the id of a chain")
	}
	found, err := client.GetWalletWithResponse(ctx, walletID, nil, editors...)
	if err != nil {
		return nil, err
	}
	if !common.IsHexAddress(found.JSON200.Address) {
		return nil, fmt.Errorf("wallet %s is on %s, which is no EVM chain", walletID, found.JSON200.ChainType)
	}
	wallet := common.HexToAddress(found.JSON200.Address)
	sign := func(from common.Address, transaction *types.Transaction) (*types.Transaction, error) {
		if from != wallet {
			return nil, bind.ErrNotAuthorized
		}
		if transaction.Type() > types.DynamicFeeTxType || len(transaction.AccessList()) > 0 {
			return nil, errors.New("the service does not sign blobs, delegations and access lists for this binding")
		}
		return signTransaction(ctx, client, walletID, unsigned(transaction, chainID), editors)
	}
	return &bind.TransactOpts{From: wallet, Signer: sign, Context: ctx}, nil
}

func signTransaction(ctx context.Context, client *custos.Client, walletID string, transaction map[string]any, editors []custos.RequestEditorFn) (*types.Transaction, error) {
	body := map[string]any{"method": "eth_signTransaction", "params": map[string]any{"transaction": transaction}}
	var answer struct {
		Data struct {
			SignedTransaction hexutil.Bytes `json:"signed_transaction"`
		} `json:"data"`
	}
	if err := client.Post(ctx, "/v1/wallets/"+url.PathEscape(walletID)+"/rpc", body, &answer, editors...); err != nil {
		return nil, err
	}
	signed := new(types.Transaction)
	return signed, signed.UnmarshalBinary(answer.Data.SignedTransaction)
}

// unsigned has the fields of a transaction as the service reads them.
func unsigned(transaction *types.Transaction, chainID *big.Int) map[string]any {
	fields := map[string]any{
		"type":      transaction.Type(),
		"chain_id":  hexutil.EncodeBig(chainID),
		"nonce":     hexutil.EncodeUint64(transaction.Nonce()),
		"gas_limit": hexutil.EncodeUint64(transaction.Gas()),
		"value":     hexutil.EncodeBig(transaction.Value()),
		"data":      hexutil.Encode(transaction.Data()),
	}
	if to := transaction.To(); to != nil {
		fields["to"] = to.Hex()
	}
	if transaction.Type() == types.DynamicFeeTxType {
		fields["max_fee_per_gas"] = hexutil.EncodeBig(transaction.GasFeeCap())
		fields["max_priority_fee_per_gas"] = hexutil.EncodeBig(transaction.GasTipCap())
	} else {
		fields["gas_price"] = hexutil.EncodeBig(transaction.GasPrice())
	}
	return fields
}
