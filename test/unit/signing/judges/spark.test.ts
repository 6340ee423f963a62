import { createPublicKey, verify } from 'node:crypto';
import { SigningKey } from 'ethers';
import { expect, test } from 'vitest';
import { signOffline } from '../../../../src/engine/signing/sign-with-key.ts';
import { hex, judgeTimeout, randomWallets, seed, unhex, walletCount } from './random-wallets.ts';

// SubjectPublicKeyInfo { id-ecPublicKey, secp256k1 } of an uncompressed point
const spkiHead = '3056301006072a8648ce3d020106052b8104000a034200';

test(
  `OpenSSL accepts ${walletCount} identity-key signatures, seed ${seed}`,
  async () => {
    for await (const wallet of randomWallets('spark')) {
      const point = new SigningKey(wallet.secret).publicKey;
      const key = createPublicKey({
        key: Buffer.from(unhex(spkiHead + point.slice(2))),
        format: 'der',
        type: 'spki',
      });
      const message = `żółw ${hex(wallet.bytes('message', wallet.number('length', 100)))}`;
      const der = await signOffline('signMessageWithIdentityKey', wallet.secret, { message });
      expect(verify('sha256', Buffer.from(message), key, unhex(der.signature))).toBe(true);
      const compact = await signOffline('signMessageWithIdentityKey', wallet.secret, {
        message,
        compact: true,
      });
      const signature = unhex(compact.signature);
      expect(verify('sha256', Buffer.from(message), { key, dsaEncoding: 'ieee-p1363' }, signature)).toBe(
        true,
      );
    }
  },
  judgeTimeout,
);
