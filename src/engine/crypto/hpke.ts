import { Chacha20Poly1305 } from '@hpke/chacha20poly1305';
import { Aes256Gcm, CipherSuite, DhkemP256HkdfSha256, HkdfSha256 } from '@hpke/core';

/**
 * Thrown when the ciphertext, the encapsulated key or the recipient's key is invalid. The message says which one, and
 * contains no bytes of it.
 */
export class HpkeError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'HpkeError';
  }
}

/** Supported AEADs; `CHACHA20_POLY1305` is the default. */
type HpkeAead = 'CHACHA20_POLY1305' | 'AES_GCM256';

/** Parameters on which sender and recipient must agree. */
export interface HpkeParameters {
  readonly aead?: HpkeAead;
  /** Application context of the key schedule; empty by default. */
  readonly info?: Uint8Array;
  /** Additional authenticated data; empty by default. */
  readonly aad?: Uint8Array;
}

export interface HpkeRecipient {
  /** 32 bytes, big endian. Wipe after use. */
  readonly privateKeyBytes: Uint8Array;
  /** 65 bytes, `0x04 || x || y`. */
  readonly publicKeyBytes: Uint8Array;
}

const SEED_BYTES = 32;
const POINT_BYTES = 65;

const suites: Readonly<Record<HpkeAead, CipherSuite>> = {
  CHACHA20_POLY1305: newSuite(new Chacha20Poly1305()),
  AES_GCM256: newSuite(new Aes256Gcm()),
};

/**
 * Encrypts one message to a recipient: HPKE in Base mode with DHKEM(P-256, HKDF-SHA256) and HKDF-SHA256. Source: RFC
 * 9180 sections 4.1, 5.1.1 and 6.1; the seed is the input of DeriveKeyPair, section 7.1.3.
 *
 * @param message `recipientPublicKeyBytes`: a 65-byte point; `ephemeralSeed`: 32 random bytes, never reused.
 * @returns the 65-byte encapsulated key, and ciphertext || tag.
 * @throws HpkeError
 */
export async function sealHpke(
  message: {
    readonly recipientPublicKeyBytes: Uint8Array;
    readonly plaintext: Uint8Array;
    readonly ephemeralSeed: Uint8Array;
  },
  { aead = 'CHACHA20_POLY1305', info, aad }: HpkeParameters = {},
): Promise<{ encapsulatedKey: Uint8Array; ciphertext: Uint8Array }> {
  const { recipientPublicKeyBytes, plaintext, ephemeralSeed } = message;
  assertLength('a recipient public key', recipientPublicKeyBytes, POINT_BYTES);
  assertLength('an ephemeral seed', ephemeralSeed, SEED_BYTES);
  const suite = suites[aead];
  try {
    const sender = await suite.createSenderContext({
      recipientPublicKey: await suite.kem.deserializePublicKey(recipientPublicKeyBytes),
      ekm: ephemeralSeed,
      ...(info === undefined ? {} : { info }),
    });
    const ciphertext = await sender.seal(plaintext, aad);
    return { encapsulatedKey: new Uint8Array(sender.enc), ciphertext: new Uint8Array(ciphertext) };
  } catch (error) {
    throw new HpkeError('expected a recipient public key on the curve P-256', error);
  }
}

/**
 * Decrypts a message that `sealHpke` has encrypted. Source: RFC 9180 sections 5.1.1 and 6.1.
 *
 * @param message `recipientPrivateKeyBytes`: 32 bytes; `encapsulatedKey`: 65 bytes; `ciphertext`: with its 16-byte
 * tag.
 * @throws HpkeError if any byte is wrong.
 */
export async function openHpke(
  message: {
    readonly recipientPrivateKeyBytes: Uint8Array;
    readonly encapsulatedKey: Uint8Array;
    readonly ciphertext: Uint8Array;
  },
  { aead = 'CHACHA20_POLY1305', info, aad }: HpkeParameters = {},
): Promise<Uint8Array> {
  const { recipientPrivateKeyBytes, encapsulatedKey, ciphertext } = message;
  assertLength('an encapsulated key', encapsulatedKey, POINT_BYTES);
  const suite = suites[aead];
  try {
    const recipient = await suite.createRecipientContext({
      recipientKey: await suite.kem.deserializePrivateKey(recipientPrivateKeyBytes),
      enc: encapsulatedKey,
      ...(info === undefined ? {} : { info }),
    });
    return new Uint8Array(await recipient.open(ciphertext, aad));
  } catch (error) {
    throw new HpkeError('the ciphertext cannot be decrypted with this key', error);
  }
}

/** Derives a recipient key pair from a seed of 32 random bytes. Source: RFC 9180 section 7.1.3, DeriveKeyPair. */
export async function hpkeRecipientFromSeed(seed: Uint8Array): Promise<HpkeRecipient> {
  assertLength('a seed', seed, SEED_BYTES);
  const { kem } = suites.CHACHA20_POLY1305;
  const pair = await kem.deriveKeyPair(seed);
  return {
    privateKeyBytes: new Uint8Array(await kem.serializePrivateKey(pair.privateKey)),
    publicKeyBytes: new Uint8Array(await kem.serializePublicKey(pair.publicKey)),
  };
}

function newSuite(aead: Chacha20Poly1305 | Aes256Gcm): CipherSuite {
  return new CipherSuite({ kem: new DhkemP256HkdfSha256(), kdf: new HkdfSha256(), aead });
}

function assertLength(what: string, bytes: Uint8Array, length: number): void {
  if (bytes.length !== length)
    throw new HpkeError(`expected ${what} of ${length} bytes, got ${bytes.length}`);
}
