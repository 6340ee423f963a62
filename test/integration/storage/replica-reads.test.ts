import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { idempotencyKeys } from '../../../src/domain/base/idempotency/idempotency-keys.ts';
import { singleUseSignatures } from '../../../src/domain/base/replay-protection/single-use-signatures.ts';
import { publishedSafeguards } from '../../../src/domain/base/safeguards/safeguards.ts';
import { ApiError } from '../../../src/errors.ts';
import { type OperationId, operations } from '../../../src/generated/operations.ts';
import { registry } from '../../../src/generated/registry.ts';
import { createReplicaReads } from '../../../src/server/replica-reads.ts';
import type { RequestState } from '../../../src/server/request-state.ts';
import { unitsOf } from '../../../src/server/unit-of-work.ts';
import { watchReplica } from '../../../src/storage/replica-lag.ts';
import { databaseKinds, openTestDatabase } from '../../support/databases.ts';
import { waitFor } from '../../support/run-custos.ts';
import { runnerOf } from '../../support/run-handlers.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';
import { unsignedProof } from '../../support/unsigned-proof.ts';

// The replica is another database with the same app, so that what is read shows where it was read.
describe.each(databaseKinds)('on %s', (kind) => {
  let world: TestOperations;
  let replica: TestOperations;
  let lagMs: number;
  let nowMs: number;
  let isAway: boolean;
  let run: (
    id: OperationId,
    input?: Partial<RequestState>,
    path?: Record<string, string>,
  ) => Promise<unknown>;

  beforeEach(async () => {
    [lagMs, nowMs, isAway] = [0, 0, false];
    world = await openOperations(kind);
    replica = await openOperations(kind);
    await replica.run('createWallet', { body: { chain_type: 'solana' } });
    const openUnit = unitsOf(world.database);
    const operation = runnerOf(registry, {
      ...{ services: world.services, openUnit, check: () => undefined, idempotency: idempotencyKeys() },
      singleUse: singleUseSignatures(publishedSafeguards),
      replica: createReplicaReads({
        ...{ primary: openUnit, lagMs: () => lagMs, now: () => nowMs },
        replica: async (write) => {
          if (isAway) throw Object.assign(new Error('the connection was lost'), { isUnavailable: true });
          return unitsOf(replica.database)(write);
        },
      }),
    });
    run = async (id, input = {}, path = {}) => {
      const state = {
        ...{
          id: 'r',
          response: { destroyed: false },
          headers: {},
          nowMs: world.clock.nowMs,
          app: replica.app,
        },
        ...{ route: { operation: operations[id], params: path }, method: operations[id].method, query: {} },
        ...{ proof: unsignedProof, effects: [], ...input },
      } as unknown as RequestState;
      const { text } = await operation(state);
      return text === undefined ? undefined : JSON.parse(text);
    };
  });
  afterEach(async () => {
    await world[Symbol.asyncDispose]();
    await replica[Symbol.asyncDispose]();
  });

  const wallets = async (): Promise<string[]> =>
    ((await run('listWallets')) as { data: { chain_type: string }[] }).data.map(
      ({ chain_type }) => chain_type,
    );

  test('lists are read from the replica, everything else from the primary', async () => {
    expect(await wallets()).toEqual(['solana']);
    const { body } = await replica.run('listWallets', {});
    const [wallet] = (body as { data: { id: string }[] }).data;
    await expect(run('getWallet', {}, { wallet_id: wallet!.id })).rejects.toMatchObject({
      code: 'not_found',
    });
  });

  test('an app that has changed something reads from the primary for two seconds', async () => {
    await run('createWallet', { body: { chain_type: 'ethereum' } });
    expect(await wallets()).toEqual(['ethereum']);
    nowMs = 1999;
    expect(await wallets()).toEqual(['ethereum']);
    nowMs = 2000;
    expect(await wallets()).toEqual(['solana']);
  });

  test('a replica that is behind or away is not used', async () => {
    lagMs = 1001;
    expect(await wallets()).toEqual([]);
    lagMs = 1000;
    expect(await wallets()).toEqual(['solana']);
    const change = (what: string) => replica.database.orm.em.fork().execute(`alter table ${what}`);
    await change('wallets rename column chain_type to absent');
    // A failure that is not the connection's is not hidden.
    await expect(wallets()).rejects.not.toBeInstanceOf(ApiError);
    await change('wallets rename column absent to chain_type');
    isAway = true;
    expect(await wallets()).toEqual([]);
  });
});

test('a database that does not follow the primary is never fresh', async () => {
  await using primary = await openTestDatabase('postgres', { poolSize: 2 });
  await using other = await openTestDatabase('postgres', { poolSize: 2 });
  const changes: boolean[] = [];
  let asked = 0;
  const lag = watchReplica({
    ...{ primary, replica: other, onChange: (isKnown) => changes.push(isKnown) },
    now: () => (asked += 1),
  });
  await waitFor(() => asked >= 2);
  expect(lag.lagMs()).toBe(Infinity);
  await lag.close();
  expect(changes).toEqual([]);
});
