import { describe, expect, test } from 'vitest';
import { HpkeError, hpkeRecipientFromSeed, openHpke, sealHpke } from '../../../src/engine/crypto/hpke.ts';
import vectors from '../../vectors/rfc9180.json' with { type: 'json' };

const bytes = (hex: string) => new Uint8Array(Buffer.from(hex, 'hex'));
const hex = (value: Uint8Array) => Buffer.from(value).toString('hex');

describe('the published vector of DHKEM(P-256), HKDF-SHA256, ChaCha20-Poly1305', () => {
  const [vector] = vectors;
  if (vector === undefined) throw new Error('the vector file is empty');
  const parameters = { info: bytes(vector.info), aad: bytes(vector.aad) };

  test('the recipient is derived from its seed', async () => {
    const recipient = await hpkeRecipientFromSeed(bytes(vector.ikmR));
    expect({ sk: hex(recipient.privateKeyBytes), pk: hex(recipient.publicKeyBytes) }).toEqual({
      sk: vector.skRm,
      pk: vector.pkRm,
    });
  });

  test('sealing gives the published ciphertext and encapsulated key', async () => {
    const sealed = await sealHpke(
      {
        recipientPublicKeyBytes: bytes(vector.pkRm),
        plaintext: bytes(vector.pt),
        ephemeralSeed: bytes(vector.ikmE),
      },
      parameters,
    );
    expect({ enc: hex(sealed.encapsulatedKey), ct: hex(sealed.ciphertext) }).toEqual({
      enc: vector.enc,
      ct: vector.ct,
    });
  });

  test('opening gives the published plaintext', async () => {
    const plaintext = await openHpke(
      {
        recipientPrivateKeyBytes: bytes(vector.skRm),
        encapsulatedKey: bytes(vector.enc),
        ciphertext: bytes(vector.ct),
      },
      parameters,
    );
    expect(hex(plaintext)).toBe(vector.pt);
  });
});

describe.each(['CHACHA20_POLY1305', 'AES_GCM256'] as const)('%s', (aead) => {
  const plaintext = new TextEncoder().encode('the secret of a wallet');

  async function sealed() {
    const recipient = await hpkeRecipientFromSeed(new Uint8Array(32).fill(7));
    const message = await sealHpke(
      {
        recipientPublicKeyBytes: recipient.publicKeyBytes,
        plaintext,
        ephemeralSeed: new Uint8Array(32).fill(9),
      },
      { aead },
    );
    return { recipientPrivateKeyBytes: recipient.privateKeyBytes, ...message };
  }

  test('opens what it sealed', async () => {
    expect(await openHpke(await sealed(), { aead })).toEqual(plaintext);
  });

  test('refuses a flipped byte anywhere', async () => {
    const message = await sealed();
    for (const part of ['encapsulatedKey', 'ciphertext'] as const) {
      for (const index of [0, 1, message[part].length - 1]) {
        const changed = new Uint8Array(message[part]);
        changed[index] = (changed[index] ?? 0) ^ 1;
        await expect(openHpke({ ...message, [part]: changed }, { aead })).rejects.toThrow(HpkeError);
      }
    }
  });

  test('refuses another cipher, other context and other associated data', async () => {
    const message = await sealed();
    const other = aead === 'AES_GCM256' ? 'CHACHA20_POLY1305' : 'AES_GCM256';
    await expect(openHpke(message, { aead: other })).rejects.toThrow(HpkeError);
    await expect(openHpke(message, { aead, info: plaintext })).rejects.toThrow(HpkeError);
    await expect(openHpke(message, { aead, aad: plaintext })).rejects.toThrow(HpkeError);
  });
});

test('refuses a recipient that is not a point on the curve', async () => {
  const recipientPublicKeyBytes = new Uint8Array(65).fill(1);
  recipientPublicKeyBytes[0] = 4;
  await expect(
    sealHpke({ recipientPublicKeyBytes, plaintext: new Uint8Array(1), ephemeralSeed: new Uint8Array(32) }),
  ).rejects.toThrow(HpkeError);
});
