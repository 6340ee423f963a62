import { afterAll, beforeAll, expect, test } from 'vitest';
import { scenarios } from '../../../src/sandbox/scenarios.ts';
import { call } from '../../support/call.ts';
import { cardHolder } from '../../support/cards/holders.ts';
import { fund } from '../../support/fund.ts';
import { control } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { watchChanges } from './audited-changes.ts';

// What jobs do has no operation whose record could not be forgotten, so the database is watched instead.

let sandbox: TestSandbox;
let unrecorded: Map<string, string>;
const stackTraceLimit = Error.stackTraceLimit;
beforeAll(async () => {
  Error.stackTraceLimit = 60;
  sandbox = await startSandbox();
  unrecorded = await watchChanges(sandbox.database);
});
afterAll(async () => {
  Error.stackTraceLimit = stackTraceLimit;
  await sandbox.close();
});

/** The changes without a record since the last call. */
function changes(): string[] {
  const found = [...unrecorded.keys()].sort();
  unrecorded.clear();
  return found;
}

async function operationsRecorded(): Promise<Set<string>> {
  await sandbox.settle();
  const rows = await sandbox.database.orm.em
    .fork()
    .execute<{ entry: string }[]>('select entry from audit_records');
  return new Set(rows.map(({ entry }) => (JSON.parse(entry) as { operation: string }).operation));
}

test('a change without a record is seen', async () => {
  await sandbox.database.orm.em.fork().transactional((em) => em.execute("update apps set name = 'Other'"));
  expect(changes()).toEqual(['apps update name']);
});

test('transfers, their effects and their deliveries', async () => {
  const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
  await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
  await sandbox.settle();
  await call(sandbox, 'transferFromWallet', {
    path: { wallet_id: wallet.id },
    body: {
      source: { asset: 'eth', amount: '0.01', chain: 'base' },
      destination: { address: '0x9858EfFD232B4033E47d90003D41EC34EcaEda94' },
    },
  });
  await sandbox.settle();
  expect(changes()).toEqual([]);
});

test.each(scenarios.map(({ name }) => name))('the scenario %s', async (name) => {
  const { steps } = await control<{ steps: unknown[] }>(sandbox, 'POST', `scenarios/${name}`);
  expect(steps.length).toBeGreaterThan(0);
  await sandbox.settle();
  expect(changes()).toEqual([]);
});

test('cards of a user who is frozen, and verifications', async () => {
  const { userId, card } = await cardHolder(sandbox, 10_000n);
  await control(sandbox, 'PUT', `apps/${sandbox.appId}/users/${userId}`, { frozen: true });
  await call(sandbox, 'deleteUser', { path: { user_id: userId } });
  await sandbox.settle();
  expect(changes()).toEqual([]);
  expect(await operationsRecorded()).toContain('keep-cards');
  expect(card.id).not.toBe('');
});

test('what expires is deleted without a record, and nothing else changes', async () => {
  await control(sandbox, 'PUT', 'clock', { advance_ms: 90 * 24 * 60 * 60 * 1000 });
  await sandbox.settle();
  expect(changes().filter((change) => !/ delete$/.test(change))).toEqual([]);
});
