import { CallData, ec, hash, num, Signer } from 'starknet';
import { expect, test } from 'vitest';
import { deriveWallet } from '../../../../src/engine/signing/chains.ts';
import { rawSign } from '../../../../src/engine/signing/sign-with-key.ts';
import { hex, judgeTimeout, randomWallets, seed, unhex, walletCount } from './random-wallets.ts';

const readyClass = '0x036078334509b514626504edc9fb252328d1a240e4e948bef8d0c08dff45927f';
const openZeppelinClass = '0x540d7f5ec7ecf317e68d48564934cb99259781b1ee3cedbbc37ec5337f8e688';

test(
  `starknet.js agrees on ${walletCount} addresses and signatures, seed ${seed}`,
  async () => {
    for await (const wallet of randomWallets('starknet')) {
      const signer = new Signer(wallet.secret);
      const key = await signer.getPubKey();
      expect(num.cleanHex(key)).toBe(wallet.publicKey);
      const ready = CallData.compile({ owner: num.toHex(0), key, guardian: num.toHex(1) });
      expect(num.cleanHex(hash.calculateContractAddressFromHash(key, readyClass, ready, 0))).toBe(
        wallet.address,
      );
      if (wallet.index % 10 === 0) {
        const { address } = await deriveWallet('starknet', wallet.secret, {
          starknetAccountClass: 'openzeppelin',
        });
        expect(num.cleanHex(hash.calculateContractAddressFromHash(key, openZeppelinClass, [key], 0))).toBe(
          address,
        );
      }
      // 31 bytes, or 30 and a half: felts are written without leading zeros.
      const felt = `0x${hex(wallet.bytes('hash', 31)).slice(wallet.index % 2)}`;
      const signature = await rawSign('starknet', wallet.secret, { hash: felt });
      expect(unhex(signature)).toHaveLength(64);
      expect(
        ec.starkCurve.verify(signature.slice(2), num.toHex(felt), ec.starkCurve.getPublicKey(wallet.secret)),
      ).toBe(true);
    }
  },
  judgeTimeout,
);
