import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type OperationId, operations } from '../../../src/generated/operations.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { documentedOperations, exampleInput } from '../../contract/every-operation/documented-operations.ts';
import { withOneConnection } from '../../support/one-connection.ts';
import { openOperations, type RunInput, type TestOperations } from '../../support/run-operations.ts';

// A request that holds one connection and waits for a second stops the server as soon as there are as many of them as
// connections. `run` fails a request that takes a second one, here and in every test that uses it.

const notBuilt = new Set(
  readFileSync(join(import.meta.dirname, '..', '..', 'house', 'not-implemented.txt'), 'utf8').split('\n'),
);
const posts = documentedOperations.filter(
  ({ operationId: id }) => operations[id].method === 'POST' && !notBuilt.has(id),
);
const AT_ONCE = process.env.TEST_LONG === '1' ? 200 : 6;

let server: TestOperations;
let walletId: string;
beforeAll(async () => {
  server = await openOperations('postgres', { poolSize: 2 });
  const { body } = await server.run('createWallet', { body: { chain_type: 'ethereum' } });
  walletId = (body as { id: string }).id;
});
afterAll(() => server[Symbol.asyncDispose]());

/** Statuses of many requests at once; `unavailable` for those that had to wait for too long. */
async function atOnce(count: number, id: OperationId, inputOf: (index: number) => RunInput) {
  const answers = await Promise.all(
    Array.from({ length: count }, (_, index) => server.run(id, inputOf(index))),
  );
  return answers.map(({ status }) => status);
}

test('the probe sees a second connection inside a unit of work', async () => {
  const nested = withOneConnection('nested', () =>
    inUnitOf(unitsOf(server.database))(async (em) => {
      await sql`select 1 for update`.execute(em.getKysely());
      await server.database.orm.em.fork().execute('select 1');
    }),
  );
  await expect(nested).rejects.toThrow('takes a second connection while it holds one');
  const sequence = withOneConnection('one after the other', async () => {
    await server.database.orm.em.fork().execute('select 1');
    await server.database.orm.em.fork().execute('select 1');
  });
  await sequence;
});

test.each(posts.map((operation) => [operation.operationId, operation] as const))(
  'many %s at once are answered with two connections',
  async (id, operation) => {
    const { path, query, body } = exampleInput(operation);
    const known = 'wallet_id' in path ? { ...path, wallet_id: walletId } : path;
    const statuses = await atOnce(AT_ONCE, id, () => ({ path: known, query, body }));
    expect(statuses).toHaveLength(AT_ONCE);
  },
  90_000,
);

describe('sixty at once are executed with two connections', () => {
  // The sweep above has archived the other one.
  let signerId: string;
  beforeAll(async () => {
    const { body } = await server.run('createWallet', { body: { chain_type: 'ethereum' } });
    signerId = (body as { id: string }).id;
  });
  const cases: [OperationId, (index: number) => RunInput][] = [
    ['createWallet', () => ({ body: { chain_type: 'solana' } })],
    [
      'createUser',
      (index) => ({ body: { linked_accounts: [{ type: 'email', address: `user-${index}@example.com` }] } }),
    ],
    [
      'walletRpc',
      () => ({
        path: { wallet_id: signerId },
        body: { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } },
      }),
    ],
    [
      'initWalletImport',
      () => ({
        body: {
          address: '0x9858EfFD232B4033E47d90003D41EC34EcaEda94',
          chain_type: 'ethereum',
          entropy_type: 'private-key',
          encryption_type: 'HPKE',
        },
      }),
    ],
    [
      'searchUsers',
      () => ({ body: { emails: ['user-1@example.com'], phoneNumbers: [], walletAddresses: [] } }),
    ],
  ];
  test.each(cases)('sixty at once are executed with two connections: %s', async (id, inputOf) => {
    expect([...new Set(await atOnce(60, id, inputOf))]).toEqual([200]);
  });
});
