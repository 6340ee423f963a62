import { createHash } from 'node:crypto';
import {
  actions,
  baseEncode,
  createTransaction,
  decodeSignedTransaction,
  encodeTransaction,
  KeyPairEd25519,
  type PublicKey,
} from 'near-api-js';
import { expect, test } from 'vitest';
import { decodeNearTransaction } from '../../../../src/engine/signing/near.ts';
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

function transactionOf(wallet: RandomWallet, publicKey: PublicKey) {
  const all = [
    actions.transfer(BigInt(wallet.number('deposit', 2 ** 50))),
    actions.functionCall(
      'ft_transfer',
      wallet.bytes('args', wallet.number('args#', 200)),
      30_000_000_000_000n,
      1n,
    ),
    actions.createAccount(),
    actions.addFullAccessKey(publicKey),
    actions.addFunctionCallAccessKey(
      publicKey,
      'app.near',
      ['a', 'b'],
      BigInt(wallet.number('allowance', 2 ** 40)),
    ),
    actions.deleteKey(publicKey),
    actions.stake(5n, publicKey),
    actions.deployContract(wallet.bytes('wasm', 30)),
    actions.deleteAccount('heir.near'),
  ];
  const chosen = all.filter((_, index) => wallet.number(`action${index}`, 2) === 1);
  return createTransaction(
    wallet.address,
    publicKey,
    'bob.acme.near',
    BigInt(wallet.index),
    chosen,
    wallet.bytes('block', 32),
  );
}

test(
  `near-api-js agrees on ${walletCount} addresses and signed transactions, seed ${seed}`,
  async () => {
    for await (const wallet of randomWallets('near')) {
      const publicBytes = unhex(wallet.address);
      const pair = new KeyPairEd25519(baseEncode(new Uint8Array([...wallet.secret, ...publicBytes])));
      const publicKey = pair.getPublicKey();
      expect(publicKey.toString()).toBe(`ed25519:${baseEncode(publicBytes)}`);
      const transaction = transactionOf(wallet, publicKey);
      const bytes = encodeTransaction(transaction);
      expect(decodeNearTransaction(bytes)).toMatchObject({
        signerId: wallet.address,
        receiverId: 'bob.acme.near',
        nonce: BigInt(wallet.index),
      });
      const { signed_transaction } = await signOffline('near_signTransaction', wallet.secret, {
        transaction: Buffer.from(bytes).toString('base64'),
      });
      const signed = decodeSignedTransaction(new Uint8Array(Buffer.from(signed_transaction, 'base64')));
      const digest = createHash('sha256').update(bytes).digest();
      const signature = (signed.signature as unknown as { ed25519Signature: { data: number[] } })
        .ed25519Signature.data;
      expect(publicKey.verify(digest, Uint8Array.from(signature))).toBe(true);
      expect(hex(encodeTransaction(signed.transaction as never))).toBe(hex(bytes));
      expect(unhex(await rawSign('near', wallet.secret, { hash: `0x${hex(digest)}` }))).toEqual(
        Uint8Array.from(signature),
      );
    }
  },
  judgeTimeout,
);
