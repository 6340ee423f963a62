import {
  Account,
  AccountAddress,
  ChainId,
  Deserializer,
  Ed25519PrivateKey,
  EntryFunction,
  MoveVector,
  MultiSig,
  MultiSigTransactionPayload,
  parseTypeTag,
  RawTransaction,
  Script,
  SignedTransaction,
  TransactionPayloadEntryFunction,
  TransactionPayloadMultiSig,
  TransactionPayloadScript,
  U64,
} from '@aptos-labs/ts-sdk';
import { describe, expect, test } from 'vitest';
import { decodeAptosRawTransaction } from '../../../../src/engine/signing/aptos.ts';
import { rawSign, signOffline } from '../../../../src/engine/signing/sign-with-key.ts';
import {
  hex,
  judgeTimeout,
  type RandomWallet,
  randomWallets,
  seed,
  unhex,
  walletCount,
} from './random-wallets.ts';

function payloadOf(wallet: RandomWallet) {
  const types = [parseTypeTag('0x1::coin::Coin<vector<0x1::aptos_coin::AptosCoin>>'), parseTypeTag('u256')];
  const transfer = EntryFunction.build('0x1::coin', 'transfer', types, [
    AccountAddress.from(`0x${hex(wallet.bytes('to', 32))}`),
    new U64(wallet.number('amount', 2 ** 40)),
    MoveVector.U8(wallet.bytes('memo', wallet.number('memo#', 300))),
  ]);
  const kind = wallet.number('kind', 4);
  if (kind === 0)
    return new TransactionPayloadScript(new Script(wallet.bytes('code', 50), types, [new U64(7)]));
  if (kind > 1) return new TransactionPayloadEntryFunction(transfer);
  const shared = AccountAddress.from(`0x${hex(wallet.bytes('shared', 32))}`);
  return new TransactionPayloadMultiSig(
    new MultiSig(
      shared,
      wallet.number('empty', 2) === 1 ? undefined : new MultiSigTransactionPayload(transfer),
    ),
  );
}

function transactionOf(wallet: RandomWallet): RawTransaction {
  return new RawTransaction(
    AccountAddress.from(wallet.address),
    BigInt(wallet.index),
    payloadOf(wallet),
    2000n,
    BigInt(wallet.number('price', 10_000)),
    1_767_225_600n,
    new ChainId(1 + wallet.number('chain', 200)),
  );
}

describe.each(['aptos', 'movement'] as const)(`@aptos-labs/ts-sdk on %s, seed ${seed}`, (chainType) => {
  test(
    `agrees on ${walletCount} addresses and signed transactions`,
    async () => {
      for await (const wallet of randomWallets(chainType)) {
        const privateKey = new Ed25519PrivateKey(wallet.secret);
        const account = Account.fromPrivateKey({ privateKey });
        expect(account.accountAddress.toStringLong()).toBe(wallet.address);
        const raw = transactionOf(wallet);
        const transaction = raw.bcsToHex().toString();
        const { signed_transaction } = await signOffline('aptos_signTransaction', wallet.secret, {
          transaction,
        });
        const signed = SignedTransaction.deserialize(new Deserializer(unhex(signed_transaction)));
        expect(signed.raw_txn.bcsToHex().toString()).toBe(transaction);
        const authenticator = account.signTransactionWithAuthenticator({ rawTransaction: raw } as never);
        expect(signed.bcsToHex().toString()).toBe(signed_transaction);
        expect(hex(signed.authenticator.bcsToBytes())).toBe(hex(authenticator.bcsToBytes()));
        expect(decodeAptosRawTransaction(raw.bcsToBytes())).toMatchObject({
          sequenceNumber: BigInt(wallet.index),
          chainId: raw.chain_id.chainId,
          gasUnitPrice: raw.gas_unit_price,
        });
        const message = wallet.bytes('message', 1 + wallet.number('length', 200));
        const signature = await rawSign(chainType, wallet.secret, { hash: `0x${hex(message)}` });
        expect(signature).toBe(privateKey.sign(message).toString());
      }
    },
    judgeTimeout,
  );
});
