import { createPublicKey, hash as digestOf, verify } from 'node:crypto';
import { base58, bech32 } from '@scure/base';
import { StrKey } from '@stellar/stellar-base';
import { TronWeb, utils } from 'tronweb';
import { keccak256, recoverAddress } from 'viem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { WalletChainType } from '../../../../src/generated/schemas.ts';
import { call, refusal } from '../../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../../support/sandbox.ts';

type Params = { hash: string } | { bytes: string; encoding: string; hash_function: string };

const ecdsa: readonly WalletChainType[] = ['ethereum', 'tron', 'cosmos', 'bitcoin-segwit', 'xrpl'];
const schnorr: readonly WalletChainType[] = ['bitcoin-taproot', 'pearl'];
const ed25519: readonly WalletChainType[] = ['solana', 'stellar', 'sui', 'aptos', 'movement', 'near', 'ton'];
const all = [...ecdsa, ...schnorr, ...ed25519, 'starknet'] as const;
const withRecovery: readonly string[] = ['ethereum'];

let sandbox: TestSandbox;
const wallets = new Map<string, { id: string; address: string; public_key?: string | undefined }>();
beforeAll(async () => {
  sandbox = await startSandbox();
  for (const chain_type of [...all, 'spark'] as const) {
    wallets.set(chain_type, (await call(sandbox, 'createWallet', { body: { chain_type } })).body);
  }
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const pathOf = (chain: string) => ({ wallet_id: wallets.get(chain)!.id });

async function sign(chain: string, params: Params): Promise<`0x${string}`> {
  const { body } = await call(sandbox, 'rawSignWallet', { path: pathOf(chain), body: { params } as never });
  expect(body).toEqual({
    method: 'raw_sign',
    data: { signature: expect.stringMatching(/^0x[0-9a-f]+$/), encoding: 'hex' },
  });
  return body.data.signature as `0x${string}`;
}

const refused = (chain: string, params: object) =>
  refusal(sandbox, 'rawSignWallet', { path: pathOf(chain), body: { params } });

const hash = keccak256('0x1234');
// Below the bound of Starknet's felts.
const felt = `0x0${'7'.repeat(63)}`;
const digestFor = (chain: string) => (chain === 'starknet' ? felt : hash);

test.each(all)('%s: a hash yields a signature with the length of the chain', async (chain) => {
  const bytes = (await sign(chain, { hash: digestFor(chain) })).length / 2 - 1;
  expect(bytes).toBe(withRecovery.includes(chain) ? 65 : 64);
});

test.each(all.filter((chain) => chain !== 'starknet'))(
  '%s: bytes are hashed first, however they are written',
  async (chain) => {
    const message = Buffer.from('grüße');
    const spellings = [
      { bytes: 'grüße', encoding: 'utf-8' },
      { bytes: message.toString('hex'), encoding: 'hex' },
      { bytes: `0x${message.toString('hex')}`, encoding: 'hex' },
      { bytes: message.toString('base64'), encoding: 'base64' },
    ];
    const digests = {
      keccak256: keccak256(message),
      sha256: `0x${digestOf('sha256', message)}`,
      // python: hashlib.blake2b('grüße'.encode(), digest_size=32)
      blake2b256: '0x8e7026321406bcf50ea065fcc8e01021e89882d8b6f0166d8f43326a5c24ac4a',
    } as const;
    for (const [hash_function, digest] of Object.entries(digests)) {
      const expected = await sign(chain, { hash: digest });
      for (const spelling of spellings)
        expect(await sign(chain, { ...spelling, hash_function })).toBe(expected);
    }
  },
);

describe('the signature verifies under the key of the wallet', () => {
  const signatureBytes = async (chain: string) => Buffer.from((await sign(chain, { hash })).slice(2), 'hex');

  test('ethereum and tron: the address is recovered', async () => {
    const signature = await sign('ethereum', { hash });
    expect(await recoverAddress({ hash, signature })).toBe(wallets.get('ethereum')!.address);
    // Tron: r || s, and one of the two recovery bytes gives the address.
    const signature64 = (await sign('tron', { hash })).slice(2);
    expect(signature64).toMatch(/^[0-9a-f]{128}$/);
    const recovered = ['1b', '1c'].map((v) => utils.crypto.ecRecover(hash.slice(2), signature64 + v));
    expect(recovered.map((each) => TronWeb.address.fromHex(each))).toContain(wallets.get('tron')!.address);
  });

  test.each(['solana', 'stellar', 'near'])(
    '%s: node:crypto verifies the bytes of the hash as the message',
    async (chain) => {
      const { address } = wallets.get(chain)!;
      const keys: Record<string, () => Uint8Array> = {
        solana: () => base58.decode(address),
        stellar: () => StrKey.decodeEd25519PublicKey(address),
        near: () => Buffer.from(address, 'hex'),
      };
      const spki = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), keys[chain]!()]);
      const key = createPublicKey({ key: spki, format: 'der', type: 'spki' });
      expect(verify(null, Buffer.from(hash.slice(2), 'hex'), key, await signatureBytes(chain))).toBe(true);
    },
  );

  test('cosmos: node:crypto verifies r and s, and s is low', async () => {
    const { public_key: publicKey = '', address } = wallets.get('cosmos')!;
    expect(bech32.decodeToBytes(address).bytes).toHaveLength(20);
    const head = '3036301006072a8648ce3d020106052b8104000a032200';
    const key = createPublicKey({ key: Buffer.from(head + publicKey, 'hex'), format: 'der', type: 'spki' });
    const params = { bytes: 'a cosmos document', encoding: 'utf-8', hash_function: 'sha256' };
    const signature = Buffer.from((await sign('cosmos', params)).slice(2), 'hex');
    expect(
      verify('sha256', Buffer.from('a cosmos document'), { key, dsaEncoding: 'ieee-p1363' }, signature),
    ).toBe(true);
    expect(signature[32]).toBeLessThan(0x80);
  });
});

test('starknet: felts may omit leading zeros, and have an odd number of digits', async () => {
  const odd = `0x${'7'.repeat(63)}`;
  expect(await sign('starknet', { hash: odd })).toBe(await sign('starknet', { hash: felt }));
  expect(await sign('starknet', { hash: '0x1' })).toBe(await sign('starknet', { hash: '0x01' }));
});

describe('refused payloads', () => {
  test.each([...ecdsa, ...schnorr])('%s: a hash that is not 32 bytes', async (chain) => {
    for (const length of [0, 31, 33, 64]) {
      expect(await refused(chain, { hash: `0x${'11'.repeat(length)}` })).toMatchObject({
        status: 400,
        body: { code: 'invalid_data', error: expect.stringMatching(/^\/params(\/hash)?: expected /) },
      });
    }
  });

  test.each(['ethereum', 'solana', 'cosmos'])('%s: an odd number of hex digits', async (chain) => {
    expect(await refused(chain, { hash: '0x123' })).toMatchObject({
      status: 400,
      body: { code: 'invalid_data', error: expect.stringMatching(/^\/params\/hash: /) },
    });
  });

  test('starknet: a number that is not a felt', async () => {
    for (const tooLarge of [`0x${'f'.repeat(64)}`, `0x1${'0'.repeat(80)}`]) {
      expect(await refused('starknet', { hash: tooLarge })).toMatchObject({
        status: 400,
        body: { code: 'invalid_data' },
      });
    }
  });

  test('bytes that do not match their encoding', async () => {
    for (const params of [
      { bytes: 'xyz', encoding: 'hex', hash_function: 'sha256' },
      { bytes: 'ab=c', encoding: 'base64', hash_function: 'sha256' },
    ]) {
      expect(await refused('cosmos', params)).toMatchObject({
        status: 400,
        body: { code: 'invalid_data', error: expect.stringMatching(/^\/params\/bytes: /) },
      });
    }
  });

  test('params of both kinds, or of neither', async () => {
    const bytes = { bytes: '00', encoding: 'hex', hash_function: 'sha256' };
    for (const params of [
      { hash, ...bytes },
      {},
      { bytes: '00', encoding: 'hex' },
      { hash: 'no hex' },
      { hash, more: 1 },
    ]) {
      expect(await refused('cosmos', params)).toMatchObject({ status: 400, body: { code: 'invalid_data' } });
    }
    expect(await refused('cosmos', { ...bytes, hash_function: 'md5' })).toMatchObject({ status: 400 });
  });

  test('spark: every payload', async () => {
    expect(await refused('spark', { hash })).toMatchObject({
      status: 400,
      body: { code: 'invalid_data', error: expect.stringMatching(/^\/method: expected a method of `spark`/) },
    });
  });
});

test('150,000 bytes are signed, one more is refused', async () => {
  const longest = { hash: `0x${'11'.repeat(150_000)}` };
  expect(await sign('solana', longest)).toHaveLength(130);
  expect(await refused('solana', { hash: `${longest.hash}11` })).toMatchObject({ status: 400 });
});
