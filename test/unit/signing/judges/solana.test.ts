import {
  address,
  createKeyPairFromPrivateKeyBytes,
  getAddressFromPublicKey,
  getTransactionDecoder,
  signatureBytes,
  verifySignature,
} from '@solana/kit';
import {
  ComputeBudgetProgram,
  Keypair,
  PublicKey,
  SystemProgram,
  Transaction,
  TransactionMessage,
  VersionedTransaction,
} from '@solana/web3.js';
import { describe, expect, test } from 'vitest';
import { signOffline } from '../../../../src/engine/signing/sign-with-key.ts';
import { judgeTimeout, type RandomWallet, randomWallets, seed, walletCount } from './random-wallets.ts';

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
const key = (wallet: RandomWallet, label: string) => new PublicKey(wallet.bytes(label, 32));

async function sign(wallet: RandomWallet, wire: Uint8Array): Promise<Uint8Array> {
  const { signed_transaction } = await signOffline('signTransaction', wallet.secret, {
    transaction: base64(wire),
    encoding: 'base64',
  });
  return new Uint8Array(Buffer.from(signed_transaction, 'base64'));
}

function instructions(wallet: RandomWallet, from: PublicKey) {
  return [
    SystemProgram.transfer({
      fromPubkey: from,
      toPubkey: key(wallet, 'to'),
      lamports: wallet.number('l', 2 ** 40),
    }),
    ...(wallet.number('cb', 2) === 1 ? [ComputeBudgetProgram.setComputeUnitLimit({ units: 1000 })] : []),
  ];
}

describe(`@solana/kit and @solana/web3.js, seed ${seed}`, () => {
  test(
    `agree on ${walletCount} addresses and messages`,
    async () => {
      for await (const wallet of randomWallets('solana')) {
        expect(wallet.address).toBe(Keypair.fromSeed(wallet.secret).publicKey.toBase58());
        const { publicKey } = await createKeyPairFromPrivateKeyBytes(
          wallet.secret as Uint8Array<ArrayBuffer>,
        );
        expect(wallet.address).toBe(await getAddressFromPublicKey(publicKey));
        const message = wallet.bytes('message', wallet.number('length', 300));
        const { signature } = await signOffline('signMessage', wallet.secret, {
          message: base64(message),
          encoding: 'base64',
        });
        const bytes = signatureBytes(Buffer.from(signature, 'base64'));
        expect(await verifySignature(publicKey, bytes, message)).toBe(true);
      }
    },
    judgeTimeout,
  );

  test(
    `accept ${walletCount} legacy transactions`,
    async () => {
      for await (const wallet of randomWallets('solana')) {
        const payer = new PublicKey(wallet.address);
        const transaction = new Transaction({
          feePayer: payer,
          recentBlockhash: key(wallet, 'hash').toBase58(),
        });
        transaction.add(...instructions(wallet, payer));
        const signed = await sign(wallet, transaction.serialize({ requireAllSignatures: false }));
        const read = Transaction.from(signed);
        expect(read.verifySignatures(true)).toBe(true);
        expect(base64(read.serializeMessage())).toBe(base64(transaction.serializeMessage()));
      }
    },
    judgeTimeout,
  );

  test(
    `accept ${walletCount} version 0 transactions with a second signer, keeping that signature`,
    async () => {
      for await (const wallet of randomWallets('solana')) {
        const payer = Keypair.fromSeed(wallet.bytes('payer', 32));
        const message = new TransactionMessage({
          payerKey: payer.publicKey,
          recentBlockhash: key(wallet, 'hash').toBase58(),
          instructions: instructions(wallet, new PublicKey(wallet.address)),
        }).compileToV0Message();
        const transaction = new VersionedTransaction(message);
        transaction.sign([payer]);
        transaction.addSignature(payer.publicKey, transaction.signatures[0] as Uint8Array);
        const theirs = new VersionedTransaction(message);
        theirs.sign([payer, Keypair.fromSeed(wallet.secret)]);
        const signed = await sign(wallet, transaction.serialize());
        expect(base64(signed)).toBe(base64(theirs.serialize()));
        const decoded = getTransactionDecoder().decode(signed);
        expect(decoded.signatures[address(wallet.address)]).toEqual(theirs.signatures[1]);
        expect(decoded.messageBytes).toEqual(message.serialize());
      }
    },
    judgeTimeout,
  );
});
