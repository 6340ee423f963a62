import { createHash } from 'node:crypto';
import { bls12_381 } from '@noble/curves/bls12-381.js';
import { bn254 } from '@noble/curves/bn254.js';
import { concatHex, type Hex, numberToHex } from 'viem';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSandbox, type TestSandbox } from '../../../src/testing/testing.ts';
import { type Anvil, startAnvil } from '../../support/anvil.ts';

// Precompiles whose calls may take long, judged by anvil.

const CHAIN_ID = 31_337;
let sandbox: TestSandbox;
let anvil: Anvil;
beforeAll(async () => {
  sandbox = await startSandbox({ clock: 'frozen', rpcPort: 0, seedData: false });
  anvil = await startAnvil(CHAIN_ID, 'osaka');
});
afterAll(async () => {
  await sandbox.close();
  await anvil[Symbol.asyncDispose]();
});

async function ask(
  chain: number | string,
  method: string,
  { params = [], signal }: { params?: unknown[]; signal?: AbortSignal } = {},
): Promise<{ result?: unknown; error?: { message: string } }> {
  const response = await fetch(`${sandbox.rpcUrl}/${chain}`, {
    method: 'POST',
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    ...(signal === undefined ? {} : { signal }),
  });
  return (await response.json()) as { result?: unknown };
}

const field = (value: bigint, size: number): Hex => numberToHex(value, { size });
const scalar = field(0x73n ** 31n, 32);
const many = (count: number, item: Hex): Hex => concatHex(Array.from({ length: count }, () => item));

const { x: ax, y: ay } = bn254.G1.Point.BASE.toAffine();
const { y: minusY } = bn254.G1.Point.BASE.negate().toAffine();
const { x: bx, y: by } = bn254.G2.Point.BASE.toAffine();
const twist = concatHex([field(bx.c1, 32), field(bx.c0, 32), field(by.c1, 32), field(by.c0, 32)]);
const pair = concatHex([field(ax, 32), field(ay, 32), twist]);
const opposite = concatHex([field(ax, 32), field(minusY, 32), twist]);

const { G1, G2 } = bls12_381;
const g1 = (point = G1.Point.BASE): Hex => {
  const { x, y } = point.toAffine();
  return concatHex([field(x, 64), field(y, 64)]);
};
const { x: gx, y: gy } = G2.Point.BASE.toAffine();
const g2 = concatHex([field(gx.c0, 64), field(gx.c1, 64), field(gy.c0, 64), field(gy.c1, 64)]);

const rounds = (count: number): Hex => concatHex([field(BigInt(count), 4), many(52, '0x0123abcd'), '0x01']);

/*
 * The polynomial p(x) = 3 + 5x, whose value at 7 is 38: its commitment is 3 G1 + 5 tau G1, and the proof of the value is
 * the commitment of (p(x) - 38) / (x - 7) = 5. The point tau G1 is that of Ethereum's ceremony.
 */
const TAU_G1 =
  'ad3eb50121139aa34db1d545093ac9374ab7bca2c0f3bf28e27c8dcd8fc7cb42d25926fc0c97b336e9f0fb35e5a04c81';
const tauG1 = G1.Point.fromHex(TAU_G1);
const commitment = G1.Point.BASE.multiply(3n).add(tauG1.multiply(5n)).toHex();
const proof = G1.Point.BASE.multiply(5n).toHex();
const versioned = (text: string): Hex =>
  `0x01${createHash('sha256').update(Buffer.from(text, 'hex')).digest('hex').slice(2)}`;
const evaluation = (y: bigint, [c, p]: readonly [string, string] = [commitment, proof]): Hex =>
  concatHex([versioned(c), field(7n, 32), field(y, 32), `0x${c}`, `0x${p}`]);
const infinity = `c0${'00'.repeat(47)}`;

test.each<readonly [what: string, address: number, data: Hex]>([
  ['SHA-256 of a long text', 2, many(200_000, '0x0badf00d')],
  ['RIPEMD-160 of a long text', 3, many(40_000, '0x0badf00d')],
  [
    'a power with a modulus of 2,048 bits',
    5,
    concatHex([many(3, field(256n, 32)), many(3 * 64, '0xfeedbeef')]),
  ],
  ['a pairing on BN254 that is 1', 8, concatHex([pair, opposite])],
  ['a pairing on BN254 that is not 1', 8, many(3, pair)],
  [
    'a pairing on BN254 of a point beside the curve',
    8,
    concatHex([field(ax + 1n, 32), field(ay, 32), twist]),
  ],
  ['a pairing on BN254 with an input of the wrong length', 8, '0x01'],
  ['BLAKE2 of 20,000 rounds', 9, rounds(20_000)],
  ['BLAKE2 with more rounds than gas', 9, rounds(0xff_ff_ff_ff)],
  ['a sum of multiples in G1', 12, many(3, concatHex([g1(), scalar]))],
  ['a sum of multiples in G2', 14, many(2, concatHex([g2, scalar]))],
  ['a pairing on BLS12-381 that is 1', 15, concatHex([g1(), g2, g1(G1.Point.BASE.negate()), g2])],
  ['a pairing on BLS12-381 that is not 1', 15, concatHex([g1(), g2])],
  ['the evaluation of a polynomial at a point', 10, evaluation(38n)],
  ['the evaluation of the polynomial 0', 10, evaluation(0n, [infinity, infinity])],
  ['a wrong evaluation', 10, evaluation(39n)],
  ['an evaluation that is no field element', 10, evaluation(2n ** 256n - 1n)],
  ['a commitment that is no point', 10, evaluation(38n, [`ff${commitment.slice(2)}`, proof])],
  ['a proof that is no point', 10, evaluation(38n, [commitment, `8f${'12'.repeat(47)}`])],
  ['an evaluation with a hash of another commitment', 10, concatHex([field(1n, 32), field(7n, 32)])],
])('%s: result and gas are those of anvil', async (_, address, data) => {
  const call = { to: field(BigInt(address), 20), data, gas: numberToHex(12_000_000) };
  const ours = await ask(CHAIN_ID, 'eth_call', { params: [call, 'latest'] });
  const theirs = await anvil.ask('eth_call', call, 'latest').then(
    (result) => ({ result }),
    () => undefined,
  );
  expect(ours.result).toEqual(theirs?.result);
  expect(ours.error === undefined).toBe(theirs !== undefined);
  if (theirs === undefined) return;
  const gas = await ask(CHAIN_ID, 'eth_estimateGas', { params: [call] });
  expect(gas.result).toBe(await anvil.ask('eth_estimateGas', call));
});

const longCall = {
  to: field(15n, 20),
  data: many(100, concatHex([g1(), g2])),
  gas: numberToHex(16_000_000),
};

test('other chains and other methods are answered during a long call', async () => {
  const answers: string[] = [];
  const long = ask(1, 'eth_call', { params: [longCall, 'latest'] }).then(() => answers.push('long'));
  for (const chain of ['base', 'polygon', 10]) {
    await ask(chain, 'eth_getBalance', { params: [field(1n, 20), 'latest'] });
    await ask(chain, 'eth_call', { params: [{ to: field(4n, 20), data: '0x01' }, 'latest'] });
    answers.push('short');
  }
  await long;
  expect(answers).toEqual(['short', 'short', 'short', 'long']);
});

test('a long call ends when its caller leaves, and the next call is answered', async () => {
  const leaving = new AbortController();
  const left = ask(137, 'eth_call', { params: [longCall, 'latest'], signal: leaving.signal });
  await ask('base', 'eth_chainId');
  leaving.abort();
  await expect(left).rejects.toThrow('aborted');
  const next = await ask(137, 'eth_call', { params: [{ to: field(8n, 20), data: pair }, 'latest'] });
  expect(next.result).toBe(field(0n, 32));
});
