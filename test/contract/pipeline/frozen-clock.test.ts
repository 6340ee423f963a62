import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import type { OperationId } from '../../../src/generated/operations.ts';
import { attempt, call } from '../../support/call.ts';
import { startSandbox } from '../../support/sandbox.ts';

const publicKey = (): string =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' })
    .publicKey.export({ type: 'spki', format: 'der' })
    .toString('base64');

const resources: readonly {
  readonly create: OperationId;
  readonly list: OperationId;
  readonly body: (index: number) => object;
}[] = [
  { create: 'createWallet', list: 'listWallets', body: () => ({ chain_type: 'ethereum' }) },
  {
    create: 'createUser',
    list: 'listUsers',
    body: (index) => ({ linked_accounts: [{ type: 'email', address: `user-${index}@example.com` }] }),
  },
  {
    create: 'createWebhookEndpoint',
    list: 'listWebhookEndpoints',
    body: (index) => ({ url: `https://example.com/${index}` }),
  },
];

test.each(resources)('$list lists the newest first while the clock is frozen', async (resource) => {
  await using sandbox = await startSandbox({ ticks: true });
  const created: string[] = [];
  for (let index = 0; index < 8; index += 1) {
    const { body } = await attempt(sandbox, resource.create, { body: resource.body(index) });
    created.unshift((body as { id: string }).id);
  }
  const { body } = await attempt(sandbox, resource.list, {});
  const listed = (body as { data: { id: string }[] }).data.map(({ id }) => id);
  expect(listed.slice(0, created.length)).toEqual(created);
});

test('the same requests meet the same times in each run', async () => {
  const run = async () => {
    await using sandbox = await startSandbox({ ticks: true, seed: 'twice' });
    const body = { public_keys: [publicKey()] };
    const made = [
      (await call(sandbox, 'createKeyQuorum', { body })).body.id,
      (await call(sandbox, 'createWallet', { body: { chain_type: 'solana' } })).body.created_at,
    ];
    return [...made, sandbox.clock.now()];
  };
  expect(await run()).toEqual(await run());
});

test.each([
  ['now', Date.now(), false],
  ['frozen', Date.UTC(2026, 0, 1), true],
  [Date.UTC(2030, 5, 1), Date.UTC(2030, 5, 1), true],
] as const)('a seeded sandbox with the clock %s', async (clock, expectedMs, isFrozen) => {
  await using sandbox = await startSandbox({ clock });
  expect(sandbox.clock.isFrozen).toBe(isFrozen);
  expect(Math.abs(sandbox.clock.now() - expectedMs)).toBeLessThan(isFrozen ? 1 : 60_000);
});
