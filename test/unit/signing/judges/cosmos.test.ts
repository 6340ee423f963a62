import { Secp256k1HdWallet } from '@cosmjs/amino';
import { DirectSecp256k1Wallet, makeAuthInfoBytes, makeSignBytes, makeSignDoc } from '@cosmjs/proto-signing';
import { expect, test } from 'vitest';
import { entropyToMnemonic } from '../../../../src/engine/crypto/bip39.ts';
import { derivePrivateKey, deriveWallet } from '../../../../src/engine/signing/chains.ts';
import { rawSign } from '../../../../src/engine/signing/sign-with-key.ts';
import { hex, judgeTimeout, randomWallets, seed, walletCount } from './random-wallets.ts';

test(
  `@cosmjs agrees on ${walletCount} addresses and signatures, seed ${seed}`,
  async () => {
    for await (const wallet of randomWallets('cosmos')) {
      const theirs = await DirectSecp256k1Wallet.fromKey(wallet.secret, 'cosmos');
      const [account] = await theirs.getAccounts();
      expect(account?.address).toBe(wallet.address);
      expect(hex(account?.pubkey ?? new Uint8Array())).toBe(wallet.publicKey);
      const authInfo = makeAuthInfoBytes([], [], 200_000, undefined, undefined);
      const document = makeSignDoc(wallet.bytes('body', 80), authInfo, 'cosmoshub-4', wallet.index);
      const bytes = Buffer.from(makeSignBytes(document)).toString('base64');
      const signature = await rawSign('cosmos', wallet.secret, {
        bytes,
        encoding: 'base64',
        hash_function: 'sha256',
      });
      const { signature: signed } = await theirs.signDirect(wallet.address, document);
      expect(signature).toBe(`0x${Buffer.from(signed.signature, 'base64').toString('hex')}`);
    }
  },
  judgeTimeout,
);

test(`@cosmjs derives the same address of a phrase, seed ${seed}`, async () => {
  for await (const wallet of randomWallets('cosmos', 2)) {
    const mnemonic = entropyToMnemonic(wallet.bytes('entropy', 16));
    const [account] = await (await Secp256k1HdWallet.fromMnemonic(mnemonic)).getAccounts();
    const { address } = await deriveWallet('cosmos', await derivePrivateKey('cosmos', { mnemonic }));
    expect(account?.address).toBe(address);
  }
});
