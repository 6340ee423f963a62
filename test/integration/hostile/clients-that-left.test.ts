import { sql } from 'kysely';
import { Agent, fetch } from 'undici';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { idempotencyKeys } from '../../../src/domain/base/idempotency/idempotency-keys.ts';
import { singleUseSignatures } from '../../../src/domain/base/replay-protection/single-use-signatures.ts';
import { publishedSafeguards } from '../../../src/domain/base/safeguards/safeguards.ts';
import { ApiError } from '../../../src/errors.ts';
import type { OperationContext, Services } from '../../../src/ports/operation-context.ts';
import { type Admission, createAdmission, measureLoopDelay } from '../../../src/server/admission.ts';
import type { RequestState } from '../../../src/server/request-state.ts';
import { unitsOf } from '../../../src/server/unit-of-work.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../../support/databases.ts';
import { runnerOf } from '../../support/run-handlers.ts';
import { appHeaders, keptLog, startToyServer, type ToyServer } from '../../unit/server/toy-server.ts';

// Creating a toy inserts a row into `apps`.
const CLIENTS = 40;

type CreateToy = (input: { body: { name: string } }, context: OperationContext) => Promise<unknown>;

const insertToy: CreateToy = async ({ body }, { em }) => {
  await sql`insert into apps (id, name, secret_hashes, settings, created_at_ms) values (${body.name}, 'toy', '[]', '{}', 0)`.execute(
    em.getKysely(),
  );
  return { id: body.name };
};

describe.each(databaseKinds)('clients that disconnect, on %s', (kind) => {
  let database: TestDatabase;
  let server: ToyServer;
  let admission: Admission;
  let exchanges: RequestState[];
  let runs: number;
  let handler: CreateToy;
  let agent: Agent;

  beforeEach(async () => {
    agent = new Agent();
    exchanges = [];
    runs = 0;
    handler = insertToy;
    database = await openTestDatabase(kind, { poolSize: 8 });
    admission = createAdmission({
      limits: { requests: 100, concurrent: { reads: 5, writes: 5, signing: 5 }, delayMs: 20 },
      signing: [],
      loop: measureLoopDelay(),
      now: () => performance.now(),
      log: keptLog(),
    });
    const createToy = {
      run: (...given: Parameters<CreateToy>) => {
        runs += 1;
        return handler(...given);
      },
    };
    const services = { keyStore: { isLocal: true } } as Services;
    const run = runnerOf(
      { createToy },
      {
        services,
        openUnit: unitsOf(database),
        idempotency: idempotencyKeys(),
        singleUse: singleUseSignatures(publishedSafeguards),
        check: () => undefined,
        admission,
      },
    );
    server = await startToyServer({
      admission,
      run: (state) => {
        exchanges.push(state);
        return run(state);
      },
    });
  });
  afterEach(async () => {
    await agent.destroy();
    await server[Symbol.asyncDispose]();
    await database[Symbol.asyncDispose]();
  });

  const create = (index: number, signal?: AbortSignal) =>
    fetch(`${server.url}/v1/toys`, {
      method: 'POST',
      headers: {
        ...appHeaders,
        'content-type': 'application/json',
        'service-idempotency-key': `key-${index}`,
      },
      body: JSON.stringify({ name: `toy-${String(index).padStart(2, '0')}` }),
      dispatcher: agent,
      ...(signal === undefined ? {} : { signal }),
    });
  const toys = async (): Promise<string[]> => {
    const rows = await database.orm.em
      .fork()
      .execute<{ id: string }[]>("select id from apps where name = 'toy' order by id");
    return rows.map(({ id }) => id);
  };

  test('while they wait for a lock have nothing executed, and can send the same requests again', async () => {
    const blocker = database.orm.em.fork();
    await blocker.begin();
    await blocker.execute(
      kind === 'postgres' ? 'lock table apps in exclusive mode' : "delete from apps where id = 'none'",
    );
    const patience = new AbortController();
    const asked = Array.from({ length: CLIENTS }, (_, index) => create(index, patience.signal));
    const gaveUp = Promise.allSettled(asked);
    await expect.poll(() => exchanges.length).toBe(CLIENTS);
    patience.abort();
    expect((await gaveUp).every(({ status }) => status === 'rejected')).toBe(true);
    await expect.poll(() => exchanges.filter(({ response }) => response.destroyed).length).toBe(CLIENTS);
    await blocker.commit();
    const none = { reads: 0, writes: 0, signing: 0 };
    await expect.poll(() => admission.counts()).toMatchObject({ requests: 0, waiting: none });
    expect(await toys()).toEqual([]);
    // The waiting ones did not even begin.
    expect(runs).toBeLessThanOrEqual(5);

    const answers = await Promise.all(Array.from({ length: CLIENTS }, (_, index) => create(index)));
    expect(answers.map(({ status }) => status)).toEqual(Array(CLIENTS).fill(200));
    expect(answers.some(({ headers }) => headers.has('idempotent-replayed'))).toBe(false);
    expect(await toys()).toHaveLength(CLIENTS);
  });

  test('before a refusal that keeps its changes free their transactions and their places', async () => {
    // More than there are places of admission, and connections.
    for (let index = 0; index < 9; index += 1) {
      const patience = new AbortController();
      handler = async (...given) => {
        await insertToy(...given);
        patience.abort();
        await expect.poll(() => exchanges.at(-1)?.response.destroyed).toBe(true);
        throw new ApiError('not_found', 'unknown code', { keepsChanges: true });
      };
      await expect(create(index, patience.signal)).rejects.toThrow(/abort/);
      await expect.poll(() => admission.counts().requests).toBe(0);
    }
    expect(await toys()).toEqual([]);
    handler = insertToy;
    expect((await create(0)).status).toBe(200);
    expect(await toys()).toEqual(['toy-00']);
  });
});
