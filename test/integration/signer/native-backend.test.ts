import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { privateKeyToAddress } from 'viem/accounts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { silentLog } from '../../../src/adapters/log.ts';
import { openSignerKeyStore, type SignerKeyStore } from '../../../src/keys/signer-client.ts';
import { sealTo } from '../../contract/wallets/keys/hpke-client.ts';
import { figureSize } from '../../figures/figure.ts';
import { readVectors } from '../../unit/signing/vectors.ts';

// The signatures of signers in processes of their own, with the native library and without it, are those of noble.

const root = join(import.meta.dirname, '..', '..', '..');
const masterKey = randomBytes(32).toString('hex');

interface RunningSigner extends SignerKeyStore {
  readonly pid: number;
}

/** Starts a signer as the server does; without leave to load native libraries, it uses the portable code. */
async function startSigner(mayLoadAddons: boolean): Promise<RunningSigner> {
  const permissions = ['--permission', `--allow-fs-read=${root}`];
  const child = spawn(
    process.execPath,
    [
      ...permissions,
      ...(mayLoadAddons ? ['--allow-addons'] : []),
      '--disable-warning=PERM0001',
      join(root, 'src', 'keys', 'signer-main.ts'),
    ],
    { env: { CUSTOS_MASTER_KEY: masterKey }, stdio: ['ignore', 'ignore', 'inherit', 'pipe'] },
  );
  const channel = child.stdio[3] as Duplex;
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const open = () => ({
    stream: Promise.resolve(channel),
    async end() {
      channel.destroy();
      await ended;
    },
  });
  return { ...(await openSignerKeyStore(open, { log: silentLog })), pid: child.pid! };
}

let native: RunningSigner;
let portable: RunningSigner;
beforeAll(async () => {
  [native, portable] = await Promise.all([startSigner(true), startSigner(false)]);
});
afterAll(() => Promise.all([native?.close(), portable?.close()]));

/** What a signer makes of a key and a digest: the address, and r || s || v of `raw_sign`. */
async function signedIn({ keyStore }: SignerKeyStore, secret: Uint8Array, digest: Uint8Array) {
  const ofImport = { purpose: 'ethereum', rowId: 'import', appId: 'acme' };
  const ofWallet = { ...ofImport, rowId: 'wallet' };
  const { sealed, publicKey } = await keyStore.createImportKey(ofImport);
  const { ciphertext, encapsulated_key } = await sealTo(Buffer.from(publicKey).toString('base64'), secret);
  const submitted = {
    ...({ form: 'private-key', parameters: {} } as const),
    ciphertext: Buffer.from(ciphertext, 'base64'),
    encapsulatedKey: Buffer.from(encapsulated_key, 'base64'),
  };
  const wallet = await keyStore.importWalletKey(sealed, ofImport, submitted, ofWallet);
  const params = { hash: hexOf(digest) };
  const signature = await keyStore.signWithWallet(wallet.sealed, ofWallet, { method: 'raw_sign', params });
  return { address: wallet.address, signature };
}

/** The same by noble and viem. */
function expected(secret: Uint8Array, digest: Uint8Array) {
  const options = { prehash: false, lowS: true, format: 'recovered' } as const;
  const recovered = secp256k1.sign(digest, secret, options);
  const signature = hexOf(Uint8Array.of(...recovered.slice(1), 27 + recovered[0]!));
  return { address: privateKeyToAddress(hexOf(secret)), signature };
}

function hexOf(bytes: Uint8Array): `0x${string}` {
  return `0x${Buffer.from(bytes).toString('hex')}`;
}

const order = secp256k1.Point.CURVE().n;
const edges = [1n, 2n, order / 2n, order - 2n, order - 1n].map((scalar) =>
  Buffer.from(scalar.toString(16).padStart(64, '0'), 'hex'),
);
const digests = [new Uint8Array(32), ...edges];

test('one signer has loaded the native library, the other one has not', () => {
  const maps = (pid: number) => readFileSync(`/proc/${pid}/maps`, 'utf8');
  expect(maps(native.pid)).toMatch(/secp256k1.*\.node$/m);
  expect(maps(portable.pid)).not.toMatch(/\.node$/m);
});

test.each(readVectors('signature-schemes', 'secp256k1'))('$source', async ({ secret, message, compact }) => {
  const digest = createHash('sha256').update(message).digest();
  for (const signer of [native, portable]) {
    const { signature } = await signedIn(signer, Buffer.from(secret, 'hex'), digest);
    expect(signature.slice(0, 130)).toBe(`0x${compact}`);
  }
});

test('both sign as noble does: keys and digests at the edges, and random ones', async () => {
  const random = Array.from({ length: figureSize({ short: 20, long: 2_000 }) }, () => [
    randomBytes(32),
    randomBytes(32),
  ]);
  const pairs = [...edges.flatMap((secret) => digests.map((digest) => [secret, digest])), ...random];
  for (const [secret, digest] of pairs as [Buffer, Uint8Array][]) {
    const wanted = expected(secret, digest);
    expect(await signedIn(native, secret, digest)).toEqual(wanted);
    expect(await signedIn(portable, secret, digest)).toEqual(wanted);
  }
}, 120_000);

// RFC 6979 reduces such a digest before it derives the nonce, the native library derives it from the bytes as they are.
test('signatures over digests that are not below the order are valid and have nonces of their own', async () => {
  const secret = randomBytes(32);
  const above = [order, order + 1n, 2n ** 256n - 1n].map((digest) => Buffer.from(digest.toString(16), 'hex'));
  const publicKey = secp256k1.getPublicKey(secret);
  for (const signer of [native, portable]) {
    const nonces = new Map<string, bigint>();
    for (const digest of [...digests, ...above]) {
      const { signature } = await signedIn(signer, secret, digest);
      const compact = Buffer.from(signature.slice(2, 130), 'hex');
      expect(secp256k1.verify(compact, digest, publicKey, { prehash: false })).toBe(true);
      const reduced = BigInt(hexOf(digest)) % order;
      // Two signatures with one nonce over different numbers would give the key away.
      expect(nonces.get(signature.slice(2, 66)) ?? reduced).toBe(reduced);
      nonces.set(signature.slice(2, 66), reduced);
    }
  }
});
