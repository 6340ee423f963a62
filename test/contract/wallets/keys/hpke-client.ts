import { generateKeyPairSync } from 'node:crypto';
import { Chacha20Poly1305 } from '@hpke/chacha20poly1305';
import { Aes256Gcm, CipherSuite, DhkemP256HkdfSha256, HkdfSha256 } from '@hpke/core';

export interface Sealing {
  readonly aead_algorithm?: 'CHACHA20_POLY1305' | 'AES_GCM256';
  readonly info?: Uint8Array;
  readonly aad?: Uint8Array;
}

export interface Sealed {
  readonly ciphertext: string;
  readonly encapsulated_key: string;
}

const base64 = (bytes: ArrayBuffer | Uint8Array): string =>
  Buffer.from(bytes as Uint8Array).toString('base64');
const fromBase64 = (text: string): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.from(text, 'base64'));

function suiteOf(aead: Sealing['aead_algorithm'] = 'CHACHA20_POLY1305'): CipherSuite {
  return new CipherSuite({
    kem: new DhkemP256HkdfSha256(),
    kdf: new HkdfSha256(),
    aead: aead === 'AES_GCM256' ? new Aes256Gcm() : new Chacha20Poly1305(),
  });
}

/** Encrypts like a client: to the raw point in the response of the server, base64. */
export async function sealTo(
  point: string,
  secret: Uint8Array,
  { aead_algorithm, info, aad }: Sealing = {},
): Promise<Sealed> {
  const suite = suiteOf(aead_algorithm);
  const sender = await suite.createSenderContext({
    recipientPublicKey: await suite.kem.deserializePublicKey(fromBase64(point)),
    ...(info === undefined ? {} : { info }),
  });
  const ciphertext = await sender.seal(secret, aad);
  return { ciphertext: base64(ciphertext), encapsulated_key: base64(sender.enc) };
}

/** The key pair of a caller who exports, and how it decrypts the response. */
export function makeRecipient() {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pkcs8 = privateKey.export({ format: 'der', type: 'pkcs8' });
  return {
    spki: publicKey.export({ format: 'der', type: 'spki' }).toString('base64'),
    pem: publicKey.export({ format: 'pem', type: 'spki' }).toString(),
    /** The text that was sealed. */
    async open(sealed: Sealed): Promise<string> {
      const suite = suiteOf();
      const recipientKey = await crypto.subtle.importKey(
        'pkcs8',
        new Uint8Array(pkcs8),
        { name: 'ECDH', namedCurve: 'P-256' },
        true,
        ['deriveBits'],
      );
      const recipient = await suite.createRecipientContext({
        recipientKey,
        enc: fromBase64(sealed.encapsulated_key),
      });
      return Buffer.from(await recipient.open(fromBase64(sealed.ciphertext))).toString('utf8');
    },
  };
}
