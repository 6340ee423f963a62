import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createAuditTrail } from '../../../src/domain/base/audit/audit-log.ts';
import { noteChange } from '../../../src/domain/base/events/events.ts';
import { idempotencyKeys } from '../../../src/domain/base/idempotency/idempotency-keys.ts';
import { singleUseSignatures } from '../../../src/domain/base/replay-protection/single-use-signatures.ts';
import { publishedSafeguards } from '../../../src/domain/base/safeguards/safeguards.ts';
import { canonicalJson } from '../../../src/engine/crypto/encoding.ts';
import { ApiError } from '../../../src/errors.ts';
import { operations } from '../../../src/generated/operations.ts';
import type { OperationContext } from '../../../src/ports/operation-context.ts';
import type { RequestState } from '../../../src/server/request-state.ts';
import type { Operation } from '../../../src/server/route-index.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { runnerOf } from '../../support/run-handlers.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';
import { unsignedProof } from '../../support/unsigned-proof.ts';

// Every operation of the contract, with a handler of our own in the place of its own: what is recorded does not depend
// on handlers, so a new operation cannot forget it.

type Run = (context: OperationContext) => Promise<unknown>;

let world: TestOperations;
let handle: Run;
let runOperation: ReturnType<typeof runnerOf>;

beforeAll(async () => {
  world = await openOperations('sqlite');
  const openUnit = unitsOf(world.database);
  const audit = createAuditTrail({
    ...{ keyStore: world.services.keyStore, entropy: world.services.entropy, inUnit: inUnitOf(openUnit) },
    reader: () => world.database.orm.em.fork(),
  });
  await audit.open();
  const handler = { run: (_: unknown, context: OperationContext) => handle(context) };
  const registry = Object.fromEntries(Object.keys(operations).map((id) => [id, handler]));
  runOperation = runnerOf(registry, {
    services: world.services,
    ...{ openUnit, idempotency: idempotencyKeys(), singleUse: singleUseSignatures(publishedSafeguards) },
    check: () => undefined,
    audit,
  });
});
afterAll(() => world[Symbol.asyncDispose]());

const walletId = 'w'.repeat(24);

function stateOf(operation: Operation): RequestState {
  return {
    ...{ id: randomUUID(), response: { destroyed: false }, method: operation.method, target: operation.path },
    ...{ headers: { authorization: 'Basic …' }, nowMs: world.clock.nowMs, app: world.app, query: {} },
    route: { operation, params: { wallet_id: walletId, period: 'alice@example.com' } },
    body: { email: 'alice@example.com', policy_id: 'p'.repeat(24), owner_id: 'alice@example.com' },
    ...{ rawBody: Buffer.from('{"email":"alice@example.com"}'), proof: unsignedProof, effects: [] },
  } as unknown as RequestState;
}

interface Entry {
  readonly request_id?: string;
  readonly operation: string;
  readonly [name: string]: unknown;
}

async function recordsOf({ id }: RequestState): Promise<Entry[]> {
  const rows = await world.database.orm.em
    .fork()
    .execute<{ entry: string }[]>('select entry from audit_pending order by id');
  return rows.map(({ entry }) => JSON.parse(entry) as Entry).filter(({ request_id }) => request_id === id);
}

const apps = async (): Promise<number> => {
  const rows = await world.database.orm.em.fork().execute<{ n: number }[]>('select count(*) as n from apps');
  return rows[0]!.n;
};
const insertApp: Run = async ({ em }) => {
  await em.execute(
    'insert into apps (id, name, settings, secret_hashes, created_at_ms) values (?, ?, ?, ?, ?)',
    [...[randomUUID(), 'made', '{}', '[]', 1]],
  );
  return { id: 'i'.repeat(24), data: [{ id: 'd'.repeat(24) }, { id: 'bob@example.com' }], name: 'Bob' };
};

const all: Operation[] = Object.values(operations);
const changing = all.filter(({ method, isReadOnly }) => method !== 'GET' && isReadOnly !== true);

test('those that change nothing although they are not a GET are the look-ups and the quotes', () => {
  const marked = all.filter(({ isReadOnly }) => isReadOnly === true);
  const named = all.filter(({ method, id }) => method !== 'GET' && /^(get|list|search|quote|find)/.test(id));
  expect(marked).toEqual(named);
  expect(marked.length).toBeGreaterThan(15);
});

describe('a request', () => {
  test.each(changing.map(({ id }) => id))('a request of %s is recorded once, with its change', async (id) => {
    const operation: Operation = operations[id as keyof typeof operations];
    handle = insertApp;
    const before = await apps();
    const state = stateOf(operation);
    const { status } = await runOperation(state);
    expect(await apps()).toBe(before + 1);
    const [record, ...others] = await recordsOf(state);
    expect(others).toEqual([]);
    expect(record).toEqual({
      app_id: world.app.id,
      at_ms: world.clock.nowMs,
      by: { app_id: world.app.id, kind: expect.stringMatching(/^(app_secret|oauth_client|anonymous)$/) },
      decision: 'allow',
      // Only what has the form of our ids, and none of the names and addresses.
      ids: {
        id: 'i'.repeat(24),
        items: ['d'.repeat(24)],
        policy_id: 'p'.repeat(24),
        wallet_id: walletId,
      },
      operation: id,
      request: expect.stringMatching(/^[A-Za-z0-9+/]{43}=$/),
      request_id: state.id,
      status,
      version: 1,
    });
  });

  test.each(all.filter((each) => !changing.includes(each)).map(({ id }) => id))(
    'a request of %s only reads',
    async (id) => {
      handle = async () => ({});
      const state = stateOf(operations[id as keyof typeof operations]);
      await runOperation(state);
      expect(await recordsOf(state)).toEqual([]);
    },
  );
});

const [operation] = changing as [Operation];

test('names that callers choose are not recorded, however many they are', async () => {
  handle = async () => ({});
  const id = 'p'.repeat(24);
  const chosen = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`n${at}_id`, id]));
  const body = { ...chosen, 'alice@example.com_id': id, [`${'n'.repeat(100)}_id`]: id };
  const state = Object.assign(stateOf(operation), { body });
  await runOperation(state);
  const [record] = await recordsOf(state);
  expect(Object.keys(record!.ids as object)).toHaveLength(100);
  expect(Object.keys(record!.ids as object).every((name) => /^[a-z0-9_]{1,64}$/.test(name))).toBe(true);
});

test('a refused request leaves neither a change nor a record of one', async () => {
  handle = async (context) => {
    await insertApp(context);
    throw new ApiError('policy_violation');
  };
  const [before, state] = [await apps(), stateOf(operation)];
  await expect(runOperation(state)).rejects.toMatchObject({ code: 'policy_violation' });
  expect([await apps(), await recordsOf(state)]).toEqual([before, []]);
});

test('a denial that keeps its changes is recorded with them; other refusals that do are not', async () => {
  handle = async (context) => {
    await insertApp(context);
    throw new ApiError('invalid_grant', undefined, { keepsChanges: true });
  };
  const [before, state] = [await apps(), stateOf(operation)];
  await expect(runOperation(state)).rejects.toMatchObject({ code: 'invalid_grant' });
  expect(await apps()).toBe(before + 1);
  expect(await recordsOf(state)).toMatchObject([{ decision: 'deny', code: 'invalid_grant', status: 400 }]);
  const waiting = new ApiError('authorization_pending', undefined, { keepsChanges: true });
  handle = () => Promise.reject(waiting);
  const pending = stateOf(operation);
  await expect(runOperation(pending)).rejects.toBe(waiting);
  expect(await recordsOf(pending)).toEqual([]);
});

test('what a request changes after its commit, and a refusal then, are further records of it', async () => {
  const appId = world.app.id;
  handle = async (context) => {
    context.afterCommit(async () => {
      await context.inUnit(async () => undefined);
      await context.inUnit(async (_em, notes) =>
        noteChange(notes, { appId, what: 'transaction.broadcasted', id: walletId }),
      );
      throw new ApiError('transaction_broadcast_failure');
    });
    return insertApp(context);
  };
  const state = stateOf(operation);
  await expect(runOperation(state)).rejects.toMatchObject({ code: 'transaction_broadcast_failure' });
  const records = await recordsOf(state);
  expect(records).toMatchObject([
    { decision: 'allow', status: operation.successStatus },
    { phase: 'after_commit', changes: ['transaction.broadcasted'], ids: { changed: [walletId] } },
    { phase: 'after_commit', status: 400, code: 'transaction_broadcast_failure' },
  ]);
});

test('entries are in their canonical form, and the digest of a request depends on all of it', async () => {
  const rows = await world.database.orm.em
    .fork()
    .execute<{ entry: string }[]>('select entry from audit_pending');
  for (const { entry } of rows) expect(entry).toBe(canonicalJson(JSON.parse(entry)));
  expect(JSON.stringify(rows)).not.toContain('example.com');
  handle = async () => ({});
  const digestOf = async (change: object) => {
    const state = Object.assign(stateOf(operation), change);
    await runOperation(state);
    return (await recordsOf(state))[0]?.request;
  };
  const digests = [
    await digestOf({}),
    await digestOf({ rawBody: Buffer.from('{}') }),
    await digestOf({ target: '/v1/other' }),
  ];
  expect(new Set(digests).size).toBe(3);
  expect(await digestOf({})).toBe(digests[0]);
});
