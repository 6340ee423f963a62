import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

const alice = '0x742D35CC6634c0532925A3b844BC9E7595F0BEb0';
const solAlice = 'HAgk14JpMQLgt6rVgv7cBQFJWFto5Dqxi472uT3DKpqk';
const baseUsdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';

let sandbox: TestSandbox;

beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(() => sandbox.reset());

async function control(path: string, body: object, target = sandbox) {
  const answer = await target.dispatcher.request({
    origin: target.baseUrl,
    path: `/_sandbox/${path}`,
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: answer.statusCode, body: (await answer.body.json()) as Record<string, unknown> };
}

describe('the faucet', () => {
  test('deposits the native asset in units, by the name of the chain', async () => {
    const { status, body } = await control('faucet', { chain: 'base', address: alice, amount: '2.5' });
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        caip2: 'eip155:8453',
        address: alice,
        token_address: null,
        raw_amount: '2500000000000000000',
        decimals: 18,
        raw_balance: '2500000000000000000',
        transaction_hash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
        block_number: 883_612_800,
      },
    });
    expect(await sandbox.chains.find('eip155:8453')!.balances(alice, [null, baseUsdc])).toEqual([
      2_500_000_000_000_000_000n,
      0n,
    ]);
  });

  test('deposits a named token with its decimals', async () => {
    const { body } = await control('faucet', {
      chain: 'base',
      address: alice,
      asset: 'usdc',
      amount: '1.25',
    });
    expect(body).toMatchObject({ token_address: baseUsdc, raw_amount: '1250000', decimals: 6 });
  });

  test('the faucet creates and pays for the token account of an owner on Solana', async () => {
    const mint = '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU';
    await control('faucet', { chain: 'solana_devnet', address: solAlice, asset: 'usdc', amount: '3' });
    const chain = sandbox.chains.find('solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1')!;
    if (chain.kind !== 'solana') throw new Error('expected a Solana chain');
    const [account] = await chain.tokenAccounts(solAlice, mint);
    expect(account?.rawAmount).toBe(3_000_000n);
    expect(await chain.balances(account!.address, [null])).toEqual([2_039_280n]);
  });

  test('an unknown token gets the given decimals, by default 18 on EVM chains, and keeps them', async () => {
    const token = `0x${'12'.repeat(20)}`;
    const first = await control('faucet', {
      ...{ chain: 'base', address: alice, token_address: token, amount: '1' },
      ...{ decimals: 2, symbol: 'TWO' },
    });
    expect(first.body).toMatchObject({ raw_amount: '100', decimals: 2 });
    const second = await control('faucet', {
      ...{ chain: 'base', address: alice, token_address: token, amount: '1', decimals: 9 },
    });
    expect(second.body).toMatchObject({ raw_amount: '100', decimals: 2, raw_balance: '200' });
    const other = { chain: 'base', address: alice, token_address: `0x${'13'.repeat(20)}`, amount: '1' };
    expect((await control('faucet', other)).body).toMatchObject({ decimals: 18 });
  });

  test.each([
    ['an unknown namespace', { chain: 'nochain:1', address: alice, amount: '1' }, '/chain'],
    ['an address of another chain', { chain: 'base', address: solAlice, amount: '1' }, '/address'],
    [
      'a mint that is no key',
      { chain: 'solana', address: solAlice, token_address: 'x', amount: '1' },
      '/token_address',
    ],
    ['no amount', { chain: 'base', address: alice }, '/amount'],
    ['two amounts', { chain: 'base', address: alice, amount: '1', raw_amount: '1' }, '/amount'],
    [
      'more digits than the asset has',
      { chain: 'base', address: alice, amount: '0.0000000000000000001' },
      '/amount',
    ],
    ['more than fits', { chain: 'base', address: alice, raw_amount: '9'.repeat(78) }, '/raw_amount'],
    [
      'an asset without a known address',
      { chain: 'base', address: alice, asset: 'usdt', amount: '1' },
      '/asset',
    ],
  ])('the faucet refuses %s', async (_, body, pointer) => {
    const answer = await control('faucet', body);
    expect(answer.status).toBe(400);
    expect(answer.body.error).toContain(`${pointer}: `);
  });

  test('a reset removes all deposits', async () => {
    await sandbox.reset();
    const before = await sandbox.chains.total('eip155:8453', null);
    await control('faucet', { chain: 'base', address: alice, amount: '1' });
    await sandbox.reset();
    expect(await sandbox.chains.find('eip155:8453')!.balances(alice, [null])).toEqual([0n]);
    expect(await sandbox.chains.total('eip155:8453', null)).toBe(before);
  });

  test('a folder keeps deposits across a restart, and an earlier clock removes no blocks', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'custos-chains-'));
    try {
      {
        await using first = await startSandbox({ dataFolder: folder });
        first.clock.advance(60_000);
        await control('faucet', { chain: 'base', address: alice, amount: '1' }, first);
      }
      await using second = await startSandbox({ dataFolder: folder });
      expect(await second.chains.find('eip155:8453')!.balances(alice, [null])).toEqual([10n ** 18n]);
      const mined = await control('blocks', { chain: 'base' }, second);
      expect(mined.body).toEqual({ data: [{ caip2: 'eip155:8453', block_number: 883_612_831 }] });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('blocks', () => {
  test('blocks are created by the clock and on request', async () => {
    await control('faucet', { chain: 'base', address: alice, amount: '1' });
    const first = await control('blocks', { count: 3 });
    expect(first.body).toEqual({ data: [{ caip2: 'eip155:8453', block_number: 883_612_803 }] });
    sandbox.clock.advance(4_000);
    const second = await control('blocks', { chain: 'eip155:8453' });
    expect(second.body).toEqual({ data: [{ caip2: 'eip155:8453', block_number: 883_612_806 }] });
  });
});
