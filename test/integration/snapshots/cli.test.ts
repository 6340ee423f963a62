import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { runCommandLine } from '../../../src/cli/program.ts';
import { call } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

const folder = mkdtempSync(join(tmpdir(), 'custos-cli-'));
const readyFile = join(folder, 'ready.json');
let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
  const { baseUrl, caFile, appId, appSecret, prefix } = sandbox;
  const ready = { base_url: baseUrl, ca_file: caFile, app_id: appId, app_secret: appSecret, prefix };
  writeFileSync(readyFile, JSON.stringify(ready));
});
afterAll(async () => {
  await sandbox[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});
afterEach(() => vi.restoreAllMocks());

/** Runs a command in this process. */
async function run(...args: string[]) {
  const lines: string[] = [];
  const errors: string[] = [];
  vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
  vi.spyOn(console, 'error').mockImplementation((line: string) => void errors.push(line));
  const code = await runCommandLine([...args, '--ready-file', readyFile]);
  return { code, output: lines.join('\n'), errors: errors.join('\n') };
}

async function countWallets(): Promise<number> {
  return (await call(sandbox, 'listWallets', {})).body.data.length;
}

test('snapshots are saved, loaded, listed and removed, also as files', async () => {
  const file = join(folder, 'empty.snapshot');
  const before = await countWallets();
  expect(await run('snapshot', 'save', 'empty', '--file', file)).toMatchObject({
    code: 0,
    output: expect.stringMatching(/^empty {2}\d+ kB {2}saved 20/),
  });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
  expect(await run('snapshot', 'load', 'empty')).toMatchObject({
    code: 0,
    output: 'loaded empty; the clock shows 2026-01-01T00:00:00.000Z',
  });
  expect(await countWallets()).toBe(before);
  expect((await run('snapshot', 'rm', 'empty')).output).toBe('removed empty');
  expect(await run('snapshot', 'list')).toMatchObject({ code: 0, output: '' });
  expect(await run('snapshot', 'load', 'empty')).toMatchObject({
    code: 1,
    errors: 'custos: Snapshot not found',
  });
  expect((await run('snapshot', 'load', 'copy', '--file', file, '--json')).output).toContain('"loaded":true');
  expect((await run('snapshot', 'list', '--json')).output).toContain('"name":"copy"');
  expect((await run('snapshot', 'save', 'Not a name')).code).toBe(2);
});

test('the clock is shown, set, advanced, frozen and resumed; a reset brings back the start', async () => {
  expect((await run('clock')).output).toBe('2026-01-01T00:00:00.000Z  frozen');
  expect((await run('clock', 'advance', '90m')).output).toBe('2026-01-01T01:30:00.000Z  frozen');
  expect((await run('clock', 'set', '2026-07-01T12:00:00Z')).output).toBe('2026-07-01T12:00:00.000Z  frozen');
  expect((await run('clock', 'resume')).output).toMatch(/^2026-07-01T12:00:.* running$/);
  expect((await run('clock', 'freeze', '--json')).output).toContain('"frozen":true');
  expect(await run('clock', 'set', 'noon')).toMatchObject({
    code: 2,
    errors: expect.stringContaining('`noon`'),
  });
  expect((await run('reset')).output).toBe('reset; the clock shows 2026-01-01T00:00:00.000Z');
});

test('the clock goes to what becomes due next', async () => {
  const errors = 'custos: nothing becomes due';
  expect(await run('clock', 'next')).toEqual({ code: 0, output: '', errors });
  const body = { method: 'personal_sign', params: { message: 'x', encoding: 'utf-8' } } as const;
  const path = { wallet_id: 'ext_wal_treasury' };
  const { intent_id: id } = (await call(sandbox, 'createWalletRpcIntent', { path, body })).body;
  expect((await run('clock', 'next')).output).toBe(`2026-01-04T00:00:00.001Z  intent expires  ${id}`);
  expect((await run('clock', 'next', '--json')).output).toContain('"kind":"intent_expires"');
  expect((await run('clock', 'advance', '--to-next')).output).toBe('2026-01-04T00:00:00.001Z  frozen');
  expect(await run('clock', 'advance', '--to-next')).toMatchObject({
    code: 1,
    errors: expect.stringContaining('nothing is planned'),
  });
  for (const given of [[], ['1h', '--to-next']]) {
    expect(await run('clock', 'advance', ...given)).toMatchObject({
      code: 2,
      errors: expect.stringContaining('either a duration or --to-next'),
    });
  }
  await run('reset');
});

test('the faucet funds wallets and addresses, and blocks are mined', async () => {
  const wallet = 'ext_wal_acme-ethereum';
  const { address } = (await call(sandbox, 'getWallet', { path: { wallet_id: wallet } })).body;
  expect((await run('faucet', wallet, '2')).output).toContain(
    `${address} on eip155:8453 has 2 of the native asset  0x`,
  );
  const funded = await run('faucet', address, '1.5', '--asset', 'usdc', '--chain', 'base', '--json');
  expect(JSON.parse(funded.output)).toMatchObject({ address, raw_balance: '1500000', decimals: 6 });
  const more = await run('faucet', address, '100', '--asset', 'usdc');
  expect(more.output).toContain(`${address} on eip155:8453 has 101.5 usdc  0x`);
  expect(await run('faucet', 'ext_wal_nobody', '1')).toMatchObject({ code: 1 });
  const [first, second] = [await run('mine', '3', '--chain', 'base'), await run('mine', '--chain', 'base')];
  const heights = [first, second].map(({ output }) => Number(/block (\d+)$/.exec(output)?.[1]));
  expect(heights[1]! - heights[0]!).toBe(1);
  expect((await run('mine', 'many')).code).toBe(2);
});

test('pools are printed with their prices, and with how a swap moved them', async () => {
  const usdc = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
  const before = await run('pools', '--chain', 'base');
  expect(before.output).toMatch(
    /^base {2}0x[\dA-Fa-f]{40} {2}[\d.,]+ \w+ \+ [\d.,]+ \w+ +1 \w+ = [\d.]+ \w+$/m,
  );
  const wallet = 'ext_wal_acme-ethereum';
  const { body: swap } = await call(sandbox, 'executeWalletSwap', {
    path: { wallet_id: wallet },
    body: {
      source: { asset_address: 'native', caip2: 'eip155:8453' },
      destination: { asset_address: usdc },
      base_amount: '100000000000000000',
    },
  });
  await run('mine', '3', '--chain', 'base');
  const path = { wallet_id: wallet, action_id: swap.id };
  const { steps } = (await call(sandbox, 'getWalletAction', { path, query: { include: 'steps' } })).body;
  const { transaction_hash: hash } = steps!.at(-1) as { transaction_hash: string };
  const traded = await run('pools', '--transaction', hash);
  expect(traded.output).toMatch(/^base {2}0x\w{40} .* {2}1 \w+ = [\d.]+ -> [\d.]+ \w+$/);
  const [pool] = (await run('pools', '--transaction', hash, '--json')).output.split('\n');
  expect(JSON.parse(pool!).trades).toHaveLength(1);
  const { output: none, errors } = await run('pools', '--transaction', `0x${'00'.repeat(32)}`);
  expect([none, errors]).toEqual(['', 'custos: the transaction traded in no pool']);
  expect((await run('pools', '--chain', 'solana')).code).toBe(2);
});
