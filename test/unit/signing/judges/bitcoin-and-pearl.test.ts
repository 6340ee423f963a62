import { schnorr } from '@noble/curves/secp256k1.js';
import { initEccLib, networks, payments, Transaction } from 'bitcoinjs-lib';
import * as ecc from 'tiny-secp256k1';
import { describe, expect, test } from 'vitest';
import type { ChainType } from '../../../../src/engine/signing/chains.ts';
import { rawSign } from '../../../../src/engine/signing/sign-with-key.ts';
import {
  hex,
  judgeTimeout,
  type RandomWallet,
  randomWallets,
  seed,
  unhex,
  walletCount,
} from './random-wallets.ts';

initEccLib(ecc);

const pearl = { ...networks.bitcoin, bech32: 'prl' };

/** A transaction that spends one output of a wallet; `script` is that output's. */
function spend(wallet: RandomWallet): Transaction {
  const transaction = new Transaction();
  transaction.version = 2;
  transaction.addInput(wallet.bytes('txid', 32), wallet.number('vout', 10));
  transaction.addOutput(wallet.bytes('to', 22), BigInt(wallet.number('value', 2 ** 40)));
  return transaction;
}

async function signHash(chainType: ChainType, wallet: RandomWallet, hash: Uint8Array): Promise<Uint8Array> {
  const signature = unhex(await rawSign(chainType, wallet.secret, { hash: `0x${hex(hash)}` }));
  expect(signature).toHaveLength(64);
  return signature;
}

describe(`bitcoinjs-lib, seed ${seed}`, () => {
  test(
    `agrees on ${walletCount} P2WPKH addresses and BIP-143 signatures`,
    async () => {
      for await (const wallet of randomWallets('bitcoin-segwit')) {
        const pubkey = unhex(wallet.publicKey);
        expect(payments.p2wpkh({ pubkey }).address).toBe(wallet.address);
        const scriptCode = payments.p2pkh({ pubkey }).output as Uint8Array;
        const value = BigInt(wallet.number('prevout', 2 ** 40));
        const hash = spend(wallet).hashForWitnessV0(0, scriptCode, value, Transaction.SIGHASH_ALL);
        const signature = await signHash('bitcoin-segwit', wallet, hash);
        expect(ecc.verify(hash, pubkey, signature, true)).toBe(true);
      }
    },
    judgeTimeout,
  );

  test.each([
    ['bitcoin-taproot', networks.bitcoin],
    ['pearl', pearl],
  ] as const)(
    `agrees on ${walletCount} taproot addresses and BIP-341 signatures of %s`,
    async (chainType, network) => {
      for await (const wallet of randomWallets(chainType)) {
        const { address, output, pubkey } = payments.p2tr({
          internalPubkey: unhex(wallet.publicKey).slice(1),
          network,
        });
        expect(address).toBe(wallet.address);
        const value = BigInt(wallet.number('prevout', 2 ** 40));
        const hash = spend(wallet).hashForWitnessV1(
          0,
          [output as Uint8Array],
          [value],
          Transaction.SIGHASH_DEFAULT,
        );
        const signature = await signHash(chainType, wallet, hash);
        expect(ecc.verifySchnorr(hash, pubkey as Uint8Array, signature)).toBe(true);
        if (wallet.index % 10 === 0) expect(schnorr.verify(signature, hash, pubkey as Uint8Array)).toBe(true);
      }
    },
    judgeTimeout,
  );
});
