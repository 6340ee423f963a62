import { sql } from 'kysely';
import { expect, test, vi } from 'vitest';
import { acmeWallet } from '../../../../mocks/wallets.ts';
import type { KeyStore } from '../../../../src/ports/key-store.ts';
import {
  type OperationsOptions,
  openOperations,
  type TestOperations,
} from '../../../support/run-operations.ts';
import { allow, payment, type Rule } from './policies.ts';

// A vault elsewhere may take long to answer. Only PostgreSQL has one.

const shop = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const baker = '0x9858EfFD232B4033E47d90003D41EC34EcaEda94';

/** A vault that signs when the test lets it. */
function gatedKeyStore() {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  const signWithWallet = vi.fn();
  const replaceKeyStore = (keyStore: KeyStore): KeyStore => ({
    ...keyStore,
    signWithWallet: async (...args: Parameters<KeyStore['signWithWallet']>) => {
      signWithWallet();
      await opened;
      return keyStore.signWithWallet(...args) as never;
    },
  });
  return { replaceKeyStore, signWithWallet, open: () => open() };
}

/** Payments of a wallet that may pay 100 in an hour. */
async function underCap(options: OperationsOptions, aggregationFields: object = {}) {
  const operations = await openOperations('postgres', options);
  const made = async (id: 'createAggregation' | 'createPolicy' | 'createWallet', body: object) => {
    const { status, body: answer } = await operations.run(id, { body });
    expect(status).toBe(200);
    return answer as { id: string };
  };
  const aggregation = await made('createAggregation', {
    name: 'Spent in an hour',
    method: 'eth_signTransaction',
    metric: { field_source: 'ethereum_transaction', field: 'value', function: 'sum' },
    window: { type: 'rolling', seconds: 3600 },
    ...aggregationFields,
  });
  const below = {
    field_source: 'reference',
    field: `aggregation.${aggregation.id}`,
    operator: 'lte',
    value: '100',
  };
  const rules = [allow('eth_signTransaction', below as Rule['conditions'][number])];
  const policy = await made('createPolicy', { version: '1.0', name: 'Cap', chain_type: 'ethereum', rules });
  const { external_id: _, ...fields } = acmeWallet;
  const { id } = await made('createWallet', { ...fields, policy_ids: [policy.id] });
  const path = { wallet_id: id };
  const pay = (value: number, to = shop) => payFrom(operations, path, { to, value });
  return { operations, path, pay };
}

async function payFrom(operations: TestOperations, path: { wallet_id: string }, transaction: object) {
  const { status, body } = await operations.run('walletRpc', { path, body: payment(transaction) });
  return status === 200 ? 'signed' : (body as { code: string }).code;
}

test('a signature is not given out when another request has used up the cap while it was made', async () => {
  const { open, ...keyStore } = gatedKeyStore();
  const { operations, pay } = await underCap(keyStore);
  await using _ = operations;
  const two = [pay(60), pay(60)];
  // Neither waits for the other.
  await vi.waitFor(() => expect(keyStore.signWithWallet).toHaveBeenCalledTimes(2));
  open();
  expect((await Promise.all(two)).sort()).toEqual(['policy_violation', 'signed']);
  // Judged again without asking the vault again; what was refused does not count.
  expect(keyStore.signWithWallet).toHaveBeenCalledTimes(2);
  expect(await pay(41)).toBe('policy_violation');
  expect(keyStore.signWithWallet).toHaveBeenCalledTimes(2);
  expect(await pay(40)).toBe('signed');
  expect(await pay(1)).toBe('policy_violation');
});

test('those who wait for the totals of a wallet hold no connection', async () => {
  const { operations, path, pay } = await underCap({ poolSize: 2 });
  await using _ = operations;
  await using other = await operations.anotherProcess();
  const em = other.database.orm.em.fork();
  await em.begin();
  // The first one waits here, with a connection.
  await sql`lock table aggregation_records in exclusive mode`.execute(em.getKysely());
  const many = Array.from({ length: 6 }, () => pay(20));
  await vi.waitFor(async () => {
    const { rows } = await sql<{ waiting: number }>`
      select count(*)::int as waiting from pg_locks where not granted and relation = 'aggregation_records'::regclass
    `.execute(em.getKysely());
    expect(rows[0]?.waiting).toBe(1);
  });
  expect((await operations.run('getWallet', { path })).status).toBe(200);
  await em.commit();
  const answers = await Promise.all(many);
  expect(answers.filter((answer) => answer === 'signed')).toHaveLength(5);
  expect(answers.filter((answer) => answer === 'policy_violation')).toHaveLength(1);
});

test('each receiver has a total of its own, also after another one was paid', async () => {
  const { operations, pay } = await underCap(
    { replaceKeyStore: (keyStore) => ({ ...keyStore }) },
    { group_by: [{ field_source: 'ethereum_transaction', field: 'to' }] },
  );
  await using _ = operations;
  expect(await pay(60)).toBe('signed');
  expect(await pay(41)).toBe('policy_violation');
  expect(await pay(60, baker)).toBe('signed');
  expect(await pay(40)).toBe('signed');
  expect(await pay(1)).toBe('policy_violation');
  expect(await pay(41, baker)).toBe('policy_violation');
  expect(await pay(40, baker)).toBe('signed');
});

test('what was paid before the window does not count', async () => {
  const { operations, pay } = await underCap({ replaceKeyStore: (keyStore) => ({ ...keyStore }) });
  await using _ = operations;
  expect(await pay(60)).toBe('signed');
  operations.clock.nowMs += 1000;
  expect(await pay(40)).toBe('signed');
  expect(await pay(1)).toBe('policy_violation');
  operations.clock.nowMs += 3_599_000;
  expect(await pay(61)).toBe('policy_violation');
  expect(await pay(60)).toBe('signed');
});
