import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { aliceKey } from '../../../mocks/authorization-keys.ts';
import { idempotencyKeys } from '../../../src/domain/base/idempotency/idempotency-keys.ts';
import { singleUseSignatures } from '../../../src/domain/base/replay-protection/single-use-signatures.ts';
import { strictSafeguards } from '../../../src/domain/base/safeguards/safeguards.ts';
import { ApiError } from '../../../src/errors.ts';
import {
  type OperationContext,
  type PlanContext,
  type Planned,
  type Services,
  unwrapPlan,
} from '../../../src/ports/operation-context.ts';
import type { RequestFault } from '../../../src/ports/requests.ts';
import { faultInjector } from '../../../src/server/inject-faults.ts';
import { unitsOf } from '../../../src/server/unit-of-work.ts';
import { createResponseCheck } from '../../../src/server/validation-issues.ts';
import { signRequest } from '../../support/call.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../../support/databases.ts';
import { runnerOf } from '../../support/run-handlers.ts';
import { unsignedProof } from '../../support/unsigned-proof.ts';
import {
  appHeaders,
  compile,
  keptLog,
  startToyServer,
  type ToyServer,
  toyApp,
} from '../../unit/server/toy-server.ts';

// The toy shop with a database: toys are stored as rows in `apps`.

interface Input {
  body: { name: string; note?: unknown };
}
type Handler = (input: Input, context: OperationContext, planned: Planned<string>) => Promise<unknown>;
type Plan = (input: Input, context: PlanContext) => Promise<string>;

const json = { ...appHeaders, 'content-type': 'application/json' };
const toyAnswer = { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] };
const errorAnswer = { type: 'object', properties: { error: { type: 'string' } }, required: ['error'] };

const insertToy = async ({ body }: Input, { em }: Pick<OperationContext, 'em'>): Promise<unknown> => {
  await sql`insert into apps (id, name, secret_hashes, settings, created_at_ms) values (${body.name}, 'toy', '[]', '{}', 0)`.execute(
    em.getKysely(),
  );
  return { id: body.name };
};

describe.each(databaseKinds)('on %s', (kind) => {
  let database: TestDatabase;
  let server: ToyServer;
  let handler: Handler;
  let plan: Plan;
  let runs: number;
  let fault: RequestFault | undefined;

  beforeEach(async () => {
    database = await openTestDatabase(kind);
    runs = 0;
    fault = undefined;
    handler = insertToy;
    plan = async () => 'nothing';
    const validators = {
      createToy: {
        200: compile(toyAnswer),
        400: compile(errorAnswer),
        401: compile(errorAnswer),
        409: compile(errorAnswer),
      },
      listToys: { 200: compile({}) },
    };
    const registry = {
      createToy: {
        plan: (...input: Parameters<Plan>) => plan(...input),
        run: (...input: Parameters<Handler>) => {
          runs += 1;
          return handler(...input);
        },
      },
      listToys: {
        run: async (_input: unknown, { em }: OperationContext) => ({ inTransaction: em.isInTransaction() }),
      },
    };
    const run = runnerOf(registry, {
      services: { keyStore: { isLocal: true } } as Services,
      openUnit: unitsOf(database),
      idempotency: idempotencyKeys(),
      singleUse: singleUseSignatures(strictSafeguards),
      check: createResponseCheck({ mode: 'always', validators, log: keptLog() }),
    });
    server = await startToyServer({
      run,
      injectFault: faultInjector({
        find: () => fault,
        isSpared: () => false,
        stopping: new AbortController().signal,
      }),
    });
  });
  afterEach(async () => {
    await server[Symbol.asyncDispose]();
    await database[Symbol.asyncDispose]();
  });

  const create = (name: string, { key, note }: { key?: string; note?: unknown } = {}) =>
    server.fetch('POST', '/v1/toys', {
      headers: key === undefined ? json : { ...json, 'service-idempotency-key': key },
      body: JSON.stringify({ name, note }),
    });
  const toys = async (): Promise<string[]> => {
    const rows = await database.orm.em
      .fork()
      .execute<{ id: string }[]>("select id from apps where name = 'toy' order by id");
    return rows.map(({ id }) => id);
  };

  describe('a connection that a fault cuts', () => {
    test('after the commit leaves everything stored, and the same key gets the stored response', async () => {
      fault = { ruleId: 'fault_1', effect: 'cut_after_commit' };
      await expect(create('bear', { key: 'order-1' })).rejects.toThrow('socket hang up');
      expect(await toys()).toEqual(['bear']);

      fault = undefined;
      const again = await create('bear', { key: 'order-1' });
      expect(again).toMatchObject({ status: 200, body: { id: 'bear' } });
      expect(again.headers.get('idempotent-replayed')).toBe('true');
      expect({ runs, toys: await toys() }).toEqual({ runs: 1, toys: ['bear'] });
    });

    test('before the commit leaves nothing stored, and the same key executes the request', async () => {
      fault = { ruleId: 'fault_1', effect: 'cut_before_commit' };
      await expect(create('bear', { key: 'order-1' })).rejects.toThrow('socket hang up');
      expect({ runs, toys: await toys() }).toEqual({ runs: 0, toys: [] });

      fault = undefined;
      const again = await create('bear', { key: 'order-1' });
      expect(again).toMatchObject({ status: 200, body: { id: 'bear' } });
      expect(again.headers.get('idempotent-replayed')).toBeNull();
    });
  });

  describe('a plan', () => {
    test('runs once, outside any transaction, and is passed to every attempt', async () => {
      const asked: boolean[] = [];
      const given: string[] = [];
      plan = async ({ body }, { em }) => {
        asked.push(em.isInTransaction());
        return `a price for ${body.name}`;
      };
      handler = async (input, context, planned) => {
        given.push(unwrapPlan(planned));
        if (given.length === 1) throw Object.assign(new Error('duplicate'), { code: '23505' });
        return insertToy(input, context);
      };
      expect(await create('bear')).toMatchObject({ status: 200 });
      expect({ asked, given }).toEqual({
        asked: [false],
        given: ['a price for bear', 'a price for bear'],
      });
    });

    test('throws its refusal when the handler unwraps it, not earlier', async () => {
      plan = async () => {
        throw new ApiError('invalid_state', 'the shop is closed');
      };
      expect(await create('bear')).toMatchObject({ status: 200 });
      handler = async (_input, _context, planned) => {
        if (runs === 2) throw new ApiError('missing_or_invalid_token');
        return { id: unwrapPlan(planned) };
      };
      expect(await create('cat')).toMatchObject({ status: 401 });
      expect(await create('cat')).toMatchObject({
        status: 400,
        body: { error: 'the shop is closed', code: 'invalid_state' },
      });
    });

    test('a plan does not affect a stored response', async () => {
      expect(await create('bear', { key: 'k' })).toMatchObject({ status: 200 });
      plan = async () => {
        throw new ApiError('invalid_state', 'the shop is closed');
      };
      handler = async (_input, _context, planned) => ({ id: unwrapPlan(planned) });
      expect(await create('bear', { key: 'k' })).toMatchObject({ status: 200, body: { id: 'bear' } });
      expect(runs).toBe(1);
    });

    test('that fails is an internal error when the handler unwraps it', async () => {
      plan = async () => {
        throw new TypeError('no such shop');
      };
      handler = async (_input, _context, planned) => ({ id: unwrapPlan(planned) });
      expect(await create('bear')).toMatchObject({ status: 500 });
    });
  });

  describe('a record of a refusal', () => {
    const sleep = (name: string): Handler => {
      return async (input, context) => {
        context.afterRefusal(async (em) => void (await insertToy({ body: { name } }, { em })));
        await insertToy(input, context);
        throw new ApiError('invalid_state', 'the bear is asleep');
      };
    };

    test('a record of a refusal is stored once although the work is rolled back', async () => {
      handler = sleep('a dream');
      expect(await create('bear', { key: 'k' })).toMatchObject({ status: 400 });
      expect(await create('bear', { key: 'k' })).toMatchObject({ status: 400 });
      expect({ runs, toys: await toys() }).toEqual({ runs: 1, toys: ['a dream'] });
    });

    test('a record of a refusal is dropped when the request succeeds or runs again', async () => {
      handler = async (input, context) => {
        context.afterRefusal(
          async (em) => void (await insertToy({ body: { name: `dream ${runs}` } }, { em })),
        );
        if (runs === 1) throw Object.assign(new Error('duplicate'), { code: '23505' });
        if (input.body.name === 'cat') throw new ApiError('invalid_state', 'the cat is asleep');
        return insertToy(input, context);
      };
      expect(await create('bear')).toMatchObject({ status: 200 });
      expect({ runs, toys: await toys() }).toEqual({ runs: 2, toys: ['bear'] });
      expect(await create('cat')).toMatchObject({ status: 400 });
      expect(await toys()).toEqual(['bear', 'dream 3']);
    });

    test('a record of a refusal fails the request when it cannot be stored', async () => {
      await create('bear');
      handler = sleep('bear');
      expect(await create('cat')).toMatchObject({ status: 500 });
      expect(await toys()).toEqual(['bear']);
    });
  });

  describe('work after the commit', () => {
    test('work after the commit: sees the committed state, and the response waits for it', async () => {
      let seen: readonly string[] = [];
      handler = async (input, context) => {
        context.afterCommit(async () => {
          seen = await toys();
          await context.inUnit((em) =>
            sql`update apps set settings = '{"noted":true}' where id = 'bear'`.execute(em.getKysely()),
          );
        });
        return insertToy(input, context);
      };
      expect(await create('bear')).toMatchObject({ status: 200, body: { id: 'bear' } });
      expect(seen).toEqual(['bear']);
      const rows = await database.orm.em.fork().execute("select settings from apps where id = 'bear'");
      expect(JSON.stringify(rows)).toContain('noted');
    });

    test('work after the commit: is skipped when the transaction is rolled back', async () => {
      let isDone = false;
      handler = async (input, context) => {
        context.afterCommit(async () => {
          isDone = true;
        });
        await insertToy(input, context);
        throw new ApiError('invalid_state', 'the bear is asleep');
      };
      expect(await create('bear')).toMatchObject({ status: 400 });
      expect(isDone).toBe(false);
    });

    test('work after the commit can refuse: the refusal is the response, also for replays, and the work stays committed', async () => {
      handler = async (input, context) => {
        context.afterCommit(async () => {
          throw new ApiError('invalid_state', 'the bear is not wanted');
        });
        return insertToy(input, context);
      };
      const refused = { status: 400, body: { error: 'the bear is not wanted', code: 'invalid_state' } };
      expect(await create('bear', { key: 'k' })).toMatchObject(refused);
      expect(await create('bear', { key: 'k' })).toMatchObject(refused);
      expect({ runs, toys: await toys() }).toEqual({ runs: 1, toys: ['bear'] });
    });

    test('work after the commit can refuse: the refusal is repeated for a signed payload that counts once', async () => {
      const row = sql`insert into apps (id, name, secret_hashes, settings, created_at_ms) values (${toyApp.id}, 'app', '[]', '{}', 0)`;
      await row.execute(database.orm.em.fork().getKysely());
      handler = async (input, context) => {
        context.noteSignatures([aliceKey.publicKey], context.proof.canonicalPayloads());
        context.afterCommit(async () => {
          throw new ApiError('invalid_state', 'the bear is not wanted');
        });
        return insertToy(input, context);
      };
      const body = { name: 'bear' };
      const request = { method: 'POST', target: '/v1/toys', body };
      const signed = { 'service-app-id': toyApp.id };
      const signature = signRequest({ baseUrl: server.url }, request, signed, aliceKey.privateKey);
      const headers = { ...json, 'service-authorization-signature': signature };
      for (const _ of ['first', 'again']) {
        expect(await server.fetch('POST', '/v1/toys', { headers, body: JSON.stringify(body) })).toMatchObject(
          { status: 400, body: { error: 'the bear is not wanted', code: 'invalid_state' } },
        );
      }
      expect({ runs, toys: await toys() }).toEqual({ runs: 1, toys: ['bear'] });
    });

    test('never runs the handler again, even when it collides with another transaction', async () => {
      handler = async (input, context) => {
        context.afterCommit(async () => {
          throw Object.assign(new Error('duplicate'), { code: '23505' });
        });
        return insertToy(input, context);
      };
      expect(await create('bear')).toMatchObject({ status: 500 });
      expect({ runs, toys: await toys() }).toEqual({ runs: 1, toys: ['bear'] });
    });
  });

  describe('one transaction around one handler', () => {
    test('one transaction around one handler is committed before the response is sent', async () => {
      expect(await create('bear')).toMatchObject({ status: 200, body: { id: 'bear' } });
      expect(await toys()).toEqual(['bear']);
    });

    test('one transaction around one handler is rolled back by a refusal', async () => {
      handler = async (input, context) => {
        await insertToy(input, context);
        throw new ApiError('invalid_state', 'the bear is asleep');
      };
      expect(await create('bear')).toMatchObject({
        status: 400,
        body: { error: 'the bear is asleep', code: 'invalid_state' },
      });
      expect(await toys()).toEqual([]);
    });

    test('one transaction around one handler is rolled back by an internal error', async () => {
      handler = async (input, context) => {
        await insertToy(input, context);
        throw new Error('bug');
      };
      expect(await create('bear')).toMatchObject({ status: 500 });
      expect(await toys()).toEqual([]);
    });

    test('is rolled back when the response violates the contract, and the error names the position', async () => {
      handler = async (input, context) => {
        await insertToy(input, context);
        return { id: 7 };
      };
      const { status, body } = await create('bear');
      expect({ status, body }).toEqual({
        status: 500,
        body: {
          error: 'Service unavailable.',
          data: {
            request_id: 'request-1',
            operation: 'createToy',
            status: 200,
            pointer: '/id',
            message: 'must be a string',
          },
        },
      });
      expect(await toys()).toEqual([]);
    });

    test('a refusal that is not in the contract is an internal error', async () => {
      handler = () => Promise.reject(new ApiError('feature_not_enabled'));
      expect(await create('bear')).toMatchObject({
        status: 500,
        body: { data: { status: 403, message: 'the status 403 is not in the contract' } },
      });
    });

    test('one transaction around one handler is not begun for a GET', async () => {
      expect((await server.fetch('GET', '/v1/toys')).body).toEqual({ inTransaction: false });
    });

    test('concurrent transactions are atomic', async () => {
      handler = async (input, context) => {
        await insertToy({ body: { name: `${input.body.name}-a` } }, context);
        await new Promise((resolve) => setTimeout(resolve, 2));
        await insertToy({ body: { name: `${input.body.name}-b` } }, context);
        if (input.body.note === 'fail') throw new ApiError('invalid_state');
        return { id: input.body.name };
      };
      const numbers = Array.from({ length: 40 }, (_, index) => String(index).padStart(2, '0'));
      await Promise.all(
        numbers.map((name, index) => create(name, { note: index % 3 === 0 ? 'fail' : 'pass' })),
      );
      const whole = numbers.filter((_, index) => index % 3 !== 0);
      expect(await toys()).toEqual(whole.flatMap((name) => [`${name}-a`, `${name}-b`]));
    });

    test("that collides with another runs again and sees the other's changes", async () => {
      handler = async (input, context) => {
        const found = await context.em.execute<object[]>('select id from apps where id = ?', [
          input.body.name,
        ]);
        if (found.length > 0) throw new ApiError('resource_already_exists');
        await new Promise((resolve) => setTimeout(resolve, 20));
        return insertToy(input, context);
      };
      const answers = await Promise.all(Array.from({ length: 4 }, () => create('bear')));
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
      expect(answers.find(({ status }) => status === 409)?.headers.get('x-should-retry')).toBe('false');
      expect(await toys()).toEqual(['bear']);
    });
  });

  describe('an idempotency key', () => {
    const reused = {
      error:
        'Idempotency key was reused for a request with a new body. Please create a new idempotency key for the request.',
      code: 'invalid_data',
    };
    const atWork = {
      error: 'Previous request with matching idempotency key is still in progress.',
      code: 'invalid_data',
    };

    test('an idempotency key returns the first response to a replay, byte for byte, without running it again', async () => {
      const first = await create('bear', { key: 'k1' });
      const second = await create('bear', { key: 'k1' });
      expect([second.status, second.text]).toEqual([first.status, first.text]);
      expect(second.headers.get('idempotent-replayed')).toBe('true');
      expect(first.headers.get('idempotent-replayed')).toBeNull();
      expect(runs).toBe(1);
    });

    test('an idempotency key compares bodies by value, not by spelling', async () => {
      const headers = { ...json, 'service-idempotency-key': 'k1' };
      await server.fetch('POST', '/v1/toys', { headers, body: '{"name":"bear","note":{"a":1.0,"b":2}}' });
      const { status } = await server.fetch('POST', '/v1/toys', {
        headers,
        body: '{ "note":{"b":2,"a":1},"name":"bear" }',
      });
      expect({ status, runs }).toEqual({ status: 200, runs: 1 });
    });

    test('an idempotency key is refused with another body', async () => {
      await create('bear', { key: 'k1' });
      expect(await create('doll', { key: 'k1' })).toMatchObject({ status: 400, body: reused });
      expect(JSON.stringify((await create('doll', { key: 'k1' })).body)).toBe(JSON.stringify(reused));
      expect(await toys()).toEqual(['bear']);
    });

    test('an idempotency key is scoped to the app', async () => {
      await create('bear', { key: 'k1' });
      expect(await create('doll', { key: 'k2' })).toMatchObject({ status: 200 });
      expect(await create('ball')).toMatchObject({ status: 200 });
      server.directory.records.push({ ...server.directory.records[0]!, id: 'other' });
      const headers = {
        ...json,
        authorization: `Basic ${Buffer.from('other:toy-secret').toString('base64')}`,
        'service-app-id': 'other',
        'service-idempotency-key': 'k1',
      };
      const answer = await server.fetch('POST', '/v1/toys', { headers, body: '{"name":"kite"}' });
      expect(answer).toMatchObject({ status: 200, body: { id: 'kite' } });
    });

    test('an idempotency key refuses a second request while the first is in progress', async () => {
      let finish = (): void => undefined;
      const wait = new Promise<void>((resolve) => {
        finish = resolve;
      });
      handler = async (input, context) => {
        await wait;
        return insertToy(input, context);
      };
      const first = create('bear', { key: 'k1' });
      while (runs === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      expect(await create('bear', { key: 'k1' })).toMatchObject({ status: 400, body: atWork });
      finish();
      expect(await first).toMatchObject({ status: 200 });
      expect(await create('bear', { key: 'k1' })).toMatchObject({ status: 200, body: { id: 'bear' } });
      expect(runs).toBe(1);
    });

    test('stores a refusal although its work is rolled back', async () => {
      handler = async (input, context) => {
        await insertToy(input, context);
        throw new ApiError('resource_conflict', 'there is a bear', { data: { n: 1 } });
      };
      const first = await create('bear', { key: 'k1' });
      handler = insertToy;
      const second = await create('bear', { key: 'k1' });
      expect([second.status, second.text]).toEqual([409, first.text]);
      expect({ runs, toys: await toys() }).toEqual({ runs: 1, toys: [] });
    });

    test.each([
      ['a policy violation', new ApiError('policy_violation')],
      ['a missing signature', new ApiError('missing_or_empty_authorization_header')],
      ['a fault', new Error('bug')],
    ])('an idempotency key does not store %s', async (_what, error) => {
      handler = () => Promise.reject(error);
      const first = await create('bear', { key: 'k1' });
      expect(first.status).toBeGreaterThanOrEqual(400);
      handler = insertToy;
      expect(await create('bear', { key: 'k1' })).toMatchObject({ status: 200, body: { id: 'bear' } });
      expect(runs).toBe(2);
    });

    test('an idempotency key expires after 24 hours', async () => {
      await create('bear', { key: 'k1' });
      server.clock.nowMs += 24 * 60 * 60 * 1000 - 1;
      expect(await create('bear', { key: 'k1' })).toMatchObject({ status: 200 });
      expect(runs).toBe(1);
      server.clock.nowMs += 1;
      expect(await create('doll', { key: 'k1' })).toMatchObject({ status: 200, body: { id: 'doll' } });
      expect(await create('bear', { key: 'k1' })).toMatchObject({ status: 400, body: reused });
      expect(runs).toBe(2);
    });

    test('an idempotency key has one effect with any number of concurrent requests', async () => {
      const answers = await Promise.all(Array.from({ length: 30 }, () => create('bear', { key: 'storm' })));
      const bodies = new Set(answers.map(({ text }) => text));
      expect(bodies.size).toBeLessThanOrEqual(2);
      for (const { status, body } of answers) {
        expect(status === 200 ? { id: 'bear' } : atWork).toEqual(body);
      }
      expect(await toys()).toEqual(['bear']);
    });
  });
});

test('processes on one PostgreSQL share idempotency keys', async () => {
  await using database = await openTestDatabase('postgres');
  const use = { appId: 'capp', key: 'k1', fingerprint: 'f', proof: unsignedProof, nowMs: 0 };
  const [here, there] = [idempotencyKeys(), idempotencyKeys()];
  const first = await unitsOf(database)(true);
  const second = await unitsOf(database)(true);
  try {
    expect(await here.begin(first.em, use)).toBeUndefined();
    await expect(there.begin(second.em, use)).rejects.toMatchObject({
      message: 'Previous request with matching idempotency key is still in progress.',
    });
    await here.keep(first.em, use, { status: 200, text: '{}', signers: [] });
    await first.commit();
    expect(await there.begin(second.em, use)).toEqual({ status: 200, text: '{}', signers: [] });
  } finally {
    await first.rollback();
    await second.rollback();
  }
});
