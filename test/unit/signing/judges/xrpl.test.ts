import { encode, encodeForSigning } from 'ripple-binary-codec';
import { expect, test } from 'vitest';
import { verifySignature, Wallet } from 'xrpl';
import { rawSign, signOffline } from '../../../../src/engine/signing/sign-with-key.ts';
import { hex, judgeTimeout, randomWallets, seed, unhex, walletCount } from './random-wallets.ts';

test(
  `xrpl agrees on ${walletCount} addresses, blobs and signatures, seed ${seed}`,
  async () => {
    for await (const wallet of randomWallets('xrpl')) {
      const theirs = new Wallet(wallet.publicKey.toUpperCase(), `00${hex(wallet.secret).toUpperCase()}`);
      expect(theirs.classicAddress).toBe(wallet.address);
      const issued = { currency: 'USD', issuer: 'rHsMGQEkVNJmpGWs8XUBoTBiAAbwxZN5v3', value: '12.5' };
      const transaction = {
        TransactionType: 'Payment' as const,
        Account: wallet.address,
        Destination: 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh',
        Amount: wallet.number('issued', 2) === 1 ? issued : String(1 + wallet.number('amount', 2 ** 40)),
        Fee: '12',
        Sequence: wallet.index + 1,
        ...(wallet.number('tag', 2) === 1 ? { DestinationTag: wallet.number('t', 2 ** 32) } : {}),
      };
      const expected = theirs.sign(transaction);
      // With the signing prefix and the key, and bare without either: the same transaction.
      const prefixed = encodeForSigning({ ...transaction, SigningPubKey: theirs.publicKey });
      for (const given of [prefixed, encode(transaction).toLowerCase()]) {
        const { signed_transaction, txn_signature } = await signOffline(
          'xrpl_signTransaction',
          wallet.secret,
          { transaction: given, encoding: 'hex' },
        );
        expect(signed_transaction).toBe(expected.tx_blob);
        expect(signed_transaction).toContain(txn_signature);
        expect(verifySignature(signed_transaction)).toBe(true);
      }
      const hash = `0x${hex(new Uint8Array(await crypto.subtle.digest('SHA-512', unhex(prefixed) as Uint8Array<ArrayBuffer>)).slice(0, 32))}`;
      expect(unhex(await rawSign('xrpl', wallet.secret, { hash }))).toHaveLength(64);
    }
  },
  judgeTimeout,
);
