import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { seededEntropy, systemEntropy } from '../../../src/adapters/runtime.ts';
import { createMasterKeyEnvelopes, KeyStoreError, localMasterKey } from '../../../src/keys/master-keys.ts';

const current = { id: 'k2', key: randomBytes(32) };
const former = { id: 'k1', key: randomBytes(32) };
const binding = { purpose: 'ethereum', rowId: 'w', appId: 'a' };
const secret = Buffer.from('a secret of thirty-three bytes...');

type NamedKey = typeof current;

function envelopesOf(first: NamedKey, ...others: NamedKey[]) {
  const local = ({ id, key }: NamedKey) => localMasterKey(id, key, systemEntropy);
  return createMasterKeyEnvelopes({
    masterKeys: [local(first), ...others.map(local)],
    entropy: systemEntropy,
  });
}

const open = (
  envelopes: ReturnType<typeof envelopesOf>,
  sealed: Awaited<ReturnType<typeof envelopes.seal>>,
  under = binding,
) => envelopes.withSecret(sealed, under, (bytes) => Buffer.from(bytes).toString());

describe('envelopes under master keys', () => {
  test('envelopes under master keys: opens any secret that it sealed', async () => {
    const envelopes = envelopesOf(current);
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array(),
        fc.record({ rowId: fc.string(), appId: fc.string(), purpose: fc.string() }),
        async (bytes, under) => {
          const sealed = await envelopes.seal(bytes, under);
          expect(await envelopes.withSecret(sealed, under, (opened) => new Uint8Array(opened))).toEqual(
            bytes,
          );
        },
      ),
      { numRuns: 50 },
    );
  });

  test('seals the same secret differently each time, without revealing it', async () => {
    const envelopes = envelopesOf(current);
    const [one, two] = [await envelopes.seal(secret, binding), await envelopes.seal(secret, binding)];
    expect(one.sealedSecret).not.toEqual(two.sealedSecret);
    expect(one.wrappedDataKey).not.toEqual(two.wrappedDataKey);
    expect(Buffer.from(one.sealedSecret).includes(secret.subarray(0, 8))).toBe(false);
    expect(one.masterKeyId).toBe('k2');
    // 12-byte nonce, 16-byte tag
    expect(one.sealedSecret).toHaveLength(secret.length + 28);
    expect(one.wrappedDataKey).toHaveLength(60);
  });

  test('envelopes under master keys: takes all its randomness from the port', async () => {
    const draw = () => {
      const entropy = seededEntropy('vault');
      const masterKeys = [localMasterKey(current.id, current.key, entropy)] as const;
      return createMasterKeyEnvelopes({ masterKeys, entropy }).seal(secret, binding);
    };
    expect(await draw()).toEqual(await draw());
  });

  test('envelopes under master keys: opens nothing under another binding, even if concatenated parts would be equal', async () => {
    const envelopes = envelopesOf(current);
    const sealed = await envelopes.seal(secret, binding);
    const others = [
      { ...binding, rowId: 'x' },
      { ...binding, appId: 'b' },
      { ...binding, purpose: 'solana' },
      { purpose: 'ethereum', rowId: 'wa', appId: '' },
      { purpose: 'ethereum', rowId: 'a', appId: 'w' },
    ];
    for (const other of others) await expect(open(envelopes, sealed, other)).rejects.toThrow(KeyStoreError);
    expect(await open(envelopes, sealed)).toBe(secret.toString());
  });

  test('envelopes under master keys: opens nothing after a single bit was changed', async () => {
    const envelopes = envelopesOf(current);
    const sealed = await envelopes.seal(secret, binding);
    for (const part of ['sealedSecret', 'wrappedDataKey'] as const) {
      for (let at = 0; at < sealed[part].length; at += 1) {
        const changed = Buffer.from(sealed[part]);
        changed[at] = (changed[at] as number) ^ 1;
        await expect(open(envelopes, { ...sealed, [part]: changed }), `${part} ${at}`).rejects.toThrow(
          KeyStoreError,
        );
      }
      await expect(open(envelopes, { ...sealed, [part]: sealed[part].subarray(0, 10) })).rejects.toThrow(
        KeyStoreError,
      );
    }
  });

  test('wipes the secret after its use, even if the use fails', async () => {
    const envelopes = envelopesOf(current);
    const sealed = await envelopes.seal(secret, binding);
    let seen = new Uint8Array();
    await envelopes.withSecret(sealed, binding, async (bytes) => {
      seen = bytes as Uint8Array<ArrayBuffer>;
      await Promise.resolve();
      expect(Buffer.from(seen).toString()).toBe(secret.toString());
    });
    expect(Buffer.from(seen).equals(Buffer.alloc(secret.length))).toBe(true);
    const failing = envelopes.withSecret(sealed, binding, (bytes) => {
      seen = bytes as Uint8Array<ArrayBuffer>;
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(Buffer.from(seen).equals(Buffer.alloc(secret.length))).toBe(true);
  });
});

test('secrets are not passed as Buffer, whose slices would be wiped as well', async () => {
  const envelopes = envelopesOf(current);
  const sealed = await envelopes.seal(secret, binding);
  await envelopes.withSecret(sealed, binding, (opened) => {
    expect(opened.constructor).toBe(Uint8Array);
    opened.slice(0, 8).fill(0);
    expect(Buffer.from(opened).equals(secret)).toBe(true);
  });
});

describe('master keys', () => {
  test('a previous key still opens, and data keys are rewrapped under the current one', async () => {
    const before = envelopesOf(former);
    const sealed = await before.seal(secret, binding);
    const envelopes = envelopesOf(current, former);
    expect(await open(envelopes, sealed)).toBe(secret.toString());

    const moved = await envelopes.rewrap(sealed, binding);
    expect(moved.masterKeyId).toBe('k2');
    expect(moved.sealedSecret).toEqual(sealed.sealedSecret);
    expect(await open(envelopesOf(current), moved)).toBe(secret.toString());
    await expect(open(before, moved)).rejects.toThrow('master key `k2` is not configured');
  });

  test('the wrong bytes under the right id open nothing, and the error contains only the id', async () => {
    const sealed = await envelopesOf(current).seal(secret, binding);
    const impostor = envelopesOf({ id: 'k2', key: randomBytes(32) });
    await expect(open(impostor, sealed)).rejects.toThrow(
      new KeyStoreError('a secret sealed under master key `k2` cannot be opened for this wallet'),
    );
  });

  test('the envelopes keep their own copy', async () => {
    const key = randomBytes(32);
    const envelopes = envelopesOf({ id: 'k', key });
    key.fill(0);
    expect(await open(envelopes, await envelopes.seal(secret, binding))).toBe(secret.toString());
    await expect(open(envelopesOf({ id: 'k', key }), await envelopes.seal(secret, binding))).rejects.toThrow(
      KeyStoreError,
    );
  });

  test.each([
    {
      masterKeys: [{ id: 'short', key: randomBytes(31) }],
      error: 'expected 32 bytes in master key `short`, got 31',
    },
    { masterKeys: [current, { ...former, id: 'k2' }], error: 'expected distinct master key ids' },
  ])('master keys: refuses invalid keys: $error', ({ masterKeys, error }) => {
    expect(() => envelopesOf(...(masterKeys as [NamedKey]))).toThrow(error);
  });
});
