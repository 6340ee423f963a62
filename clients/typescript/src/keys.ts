import { generateKeyPairSync } from 'node:crypto';
import { isUint8Array } from 'node:util/types';
import { Chacha20Poly1305 } from '@hpke/chacha20poly1305';
import { CipherSuite, DhkemP256HkdfSha256, HkdfSha256 } from '@hpke/core';
import type { CallOptions, Client, components, Input, Output } from './client.ts';
import { keySigner, type Signer } from './signing.ts';

type Schemas = components['schemas'];

const suite = new CipherSuite({
  kem: new DhkemP256HkdfSha256(),
  kdf: new HkdfSha256(),
  aead: new Chacha20Poly1305(),
});
const fromBase64 = (text: string) => new Uint8Array(Buffer.from(text, 'base64'));
const toBase64 = (bytes: ArrayBuffer) => Buffer.from(bytes).toString('base64');

/** A key pair for one answer: what the server seals to `publicKey`, `open` reads. */
function recipient() {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pkcs8 = new Uint8Array(privateKey.export({ format: 'der', type: 'pkcs8' }));
  return {
    publicKey: publicKey.export({ format: 'der', type: 'spki' }).toString('base64'),
    async open(sealed: { ciphertext: string; encapsulated_key: string }): Promise<string> {
      const algorithm = { name: 'ECDH', namedCurve: 'P-256' };
      const recipientKey = await crypto.subtle.importKey('pkcs8', pkcs8, algorithm, true, ['deriveBits']);
      const enc = fromBase64(sealed.encapsulated_key);
      return Buffer.from(await suite.open({ recipientKey, enc }, fromBase64(sealed.ciphertext))).toString();
    },
  };
}

/** Exchanges the token of a user for a key that signs as this user until `expiresAt`. */
export async function userSigner(
  client: Client,
  userJwt: string,
): Promise<{ signer: Signer; expiresAt: number }> {
  const { publicKey, open } = recipient();
  const answer = await client.authenticateWallets({
    body: { user_jwt: userJwt, encryption_type: 'HPKE', recipient_public_key: publicKey },
  });
  if (!('encrypted_authorization_key' in answer)) throw new TypeError('the server sent the key in plaintext');
  return { signer: keySigner(await open(answer.encrypted_authorization_key)), expiresAt: answer.expires_at };
}

/** Returns the private key of a wallet: hex, base58 on Solana. The owner must sign. */
export async function exportPrivateKey(
  client: Client,
  walletId: string,
  options?: CallOptions,
): Promise<string> {
  const { publicKey, open } = recipient();
  const body = { encryption_type: 'HPKE', recipient_public_key: publicKey } as const;
  return open(await client.exportWallet({ path: { wallet_id: walletId }, body }, options));
}

export type ImportedWallet = Omit<Input<'submitWalletImport'>['body'], 'wallet'> &
  Pick<Schemas['PrivateKeySubmitInput'], 'address' | 'chain_type'> & {
    /** 32 bytes; on Solana the 64 bytes of the secret key, on Stellar the seed. */
    readonly privateKey: Uint8Array;
  };

/** Creates a wallet with an existing key, which leaves this process encrypted only. */
export async function importPrivateKey(
  client: Client,
  imported: ImportedWallet,
): Promise<Output<'submitWalletImport'>> {
  const { address, chain_type, privateKey, ...rest } = imported;
  // The message is without the value, which is a key.
  if (!isUint8Array(privateKey) || privateKey.length === 0)
    throw new TypeError("privateKey must be bytes, such as Buffer.from(hex, 'hex'), and not empty");
  const wallet = { address, chain_type, encryption_type: 'HPKE', entropy_type: 'private-key' } as const;
  const { encryption_public_key } = await client.initWalletImport({ body: wallet });
  const recipientPublicKey = await suite.kem.deserializePublicKey(fromBase64(encryption_public_key));
  const { ct, enc } = await suite.seal({ recipientPublicKey }, new Uint8Array(privateKey));
  const sealed = { ciphertext: toBase64(ct), encapsulated_key: toBase64(enc) };
  return client.submitWalletImport({ body: { ...rest, wallet: { ...wallet, ...sealed } } });
}
