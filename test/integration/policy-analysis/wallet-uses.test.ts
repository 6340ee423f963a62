import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../../src/adapters/log.ts';
import { watchDepartures } from '../../../src/compose/cells/departures.ts';
import type { MoveState } from '../../../src/domain/base/processes/server-processes.ts';
import { replayPolicy } from '../../../src/domain/requests/policy-analysis/replay-policy.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import {
  admitUses,
  createUseLog,
  MAX_BYTES_PER_DAY,
} from '../../../src/domain/wallets/wallet-uses/use-log.ts';
import { requestValidators } from '../../../src/generated/request-validators.js';
import type { CreateWalletRequest } from '../../../src/generated/schemas.ts';
import { sweepExpired } from '../../../src/jobs/sweep-expired.ts';
import type { UseRecord } from '../../../src/ports/requests.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { createBodyCheck } from '../../../src/server/validation-issues.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';
import { services, startMs } from '../contexts.ts';

const dayMs = 24 * 60 * 60 * 1000;
const rule = (method: string, conditions: object[], action = 'ALLOW') => ({
  name: `${action} ${method}`,
  method,
  action,
  conditions,
});
const always = { field_source: 'system', field: 'current_unix_timestamp', operator: 'gt', value: '0' };
const greeting = { field_source: 'message', field: 'content', operator: 'starts_with', value: 'hel' };
const sign = (message: string) => ({ method: 'personal_sign', params: { message, encoding: 'utf-8' } });
const record = (requestId: string, more: Partial<UseRecord> = {}): UseRecord => ({
  appId: 'acme',
  walletId: 'wallet',
  operation: 'walletRpc',
  method: 'personal_sign',
  requestId,
  judgedAtMs: startMs,
  policyIds: '[]',
  request: '{}',
  ...more,
});

describe.each(databaseKinds)('%s', (kind) => {
  let house: TestOperations;
  beforeAll(async () => {
    house = await openOperations(kind);
  });
  afterAll(() => house[Symbol.asyncDispose]());
  beforeEach(async () => {
    await house.services.uses.flush();
    for (const table of ['wallet_uses', 'use_volumes'] as const)
      await house.database.orm.em.fork().getKysely<Tables>().deleteFrom(table).execute();
  });

  const inUnit: ReturnType<typeof inUnitOf> = (work) => inUnitOf(unitsOf(house.database))(work);
  const usesKept = async () => {
    await house.services.uses.flush();
    return house.database.orm.em
      .fork()
      .getKysely<Tables>()
      .selectFrom('wallet_uses')
      .selectAll()
      .orderBy('sequence')
      .execute();
  };
  const makeWallet = async (rules?: object[], more: Partial<CreateWalletRequest> = {}) => {
    const policy_ids: string[] = [];
    if (rules !== undefined) {
      const body = { version: '1.0', name: 'Under test', chain_type: 'ethereum', rules };
      policy_ids.push(((await house.run('createPolicy', { body })).body as { id: string }).id);
    }
    const body = { chain_type: 'ethereum', policy_ids, ...more };
    return (await house.run('createWallet', { body })).body as { id: string; policy_ids: string[] };
  };
  const use = (wallet: { id: string }, body: object) =>
    house.run('walletRpc', { path: { wallet_id: wallet.id }, body });

  test('every use is recorded with its request and decision, in order', async () => {
    const wallet = await makeWallet([rule('personal_sign', [greeting])]);
    expect((await use(wallet, sign('hello'))).status).toBe(200);
    expect((await use(wallet, sign('bye\nbye'))).status).toBe(400);
    const raw = { params: { hash: `0x${'11'.repeat(32)}` } };
    expect((await house.run('rawSignWallet', { path: { wallet_id: wallet.id }, body: raw })).status).toBe(
      400,
    );
    const free = await makeWallet();
    expect((await use(free, sign('anything'))).status).toBe(200);
    // A request that is refused before its evaluation is not a use.
    expect(
      (await use(free, { method: 'personal_sign', params: { message: 'zz', encoding: 'hex' } })).status,
    ).toBe(400);

    const common = {
      app_id: house.app.id,
      request_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      judged_at_ms: Date.UTC(2026, 0, 1),
    };
    const own = { ...common, wallet_id: wallet.id, policy_ids: JSON.stringify(wallet.policy_ids) };
    const rows = (await usesKept()).map(({ sequence: _, ...row }) => row);
    const byRequest = new Map(rows.map((row) => [row.request, row]));
    expect(rows).toHaveLength(4);
    expect(byRequest.get(JSON.stringify(sign('hello')))).toEqual({
      ...own,
      operation: 'walletRpc',
      method: 'personal_sign',
      decision: 'allowed',
      request: JSON.stringify(sign('hello')),
      request_digest: null,
      trace_id: null,
      trace: null,
    });
    const denied = byRequest.get(JSON.stringify(sign('bye\nbye')))!;
    expect(denied).toMatchObject({ ...own, method: 'personal_sign', decision: 'denied' });
    expect(denied.trace_id).toMatch(/^[a-z][0-9a-z]{23}$/);
    expect(JSON.parse(denied.trace!)).toMatchObject([
      { allowed: false, policy_id: wallet.policy_ids[0], units: [{ outcome: 'no_rule_matched' }] },
    ]);
    expect(byRequest.get(JSON.stringify(raw))).toMatchObject({
      ...own,
      operation: 'rawSignWallet',
      method: 'signRawMessageBytes',
      decision: 'denied',
    });
    const reported = await house.database.orm.em
      .fork()
      .getKysely<Tables>()
      .selectFrom('outbox_events')
      .select('payload')
      .where('type', '=', 'wallet.use_denied')
      .orderBy('sequence')
      .execute();
    const toldOf = (method: string, { trace_id }: { trace_id: string | null }, operation: string) => ({
      type: 'wallet.use_denied',
      wallet_id: wallet.id,
      operation,
      method,
      policy_id: wallet.policy_ids[0],
      trace_id,
      request_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      denied_at: common.judged_at_ms,
    });
    expect(reported.map(({ payload }) => JSON.parse(payload))).toEqual([
      toldOf('personal_sign', denied, 'walletRpc'),
      toldOf('signRawMessageBytes', byRequest.get(JSON.stringify(raw))!, 'rawSignWallet'),
    ]);
    expect(byRequest.get(JSON.stringify(sign('anything')))).toMatchObject({
      ...common,
      wallet_id: free.id,
      policy_ids: '[]',
      decision: 'allowed',
    });
  });

  test('concurrent uses are each recorded once', async () => {
    const wallet = await makeWallet([rule('personal_sign', [greeting])]);
    const words = Array.from({ length: 150 }, (_, index) => `${index % 3 === 0 ? 'bye' : 'hello'} ${index}`);
    await Promise.all(words.map((word) => use(wallet, sign(word))));
    const rows = await usesKept();
    expect(rows.map(({ request }) => JSON.parse(request!).params.message).sort()).toEqual([...words].sort());
    expect(rows.filter(({ decision }) => decision === 'denied')).toHaveLength(50);
  });

  test('a request that is too large is recorded without its body', async () => {
    const wallet = await makeWallet();
    expect((await use(wallet, sign('x'.repeat(300_000)))).status).toBe(200);
    expect(await usesKept()).toMatchObject([{ method: 'personal_sign', decision: 'allowed', request: null }]);
  });

  test('once an app has recorded 256 MiB in a day, digests are kept until the next day', async () => {
    const wallet = await makeWallet([rule('personal_sign', [greeting])]);
    const full = [{ appId: house.app.id, judgedAtMs: startMs, texts: ['x'.repeat(MAX_BYTES_PER_DAY - 200)] }];
    expect(await inUnit((em) => admitUses(em, full))).toEqual([true]);
    const [kept, allowed, denied] = ['hello', `hello ${'x'.repeat(300)}`, 'bye'].map(sign);
    await use(wallet, kept!);
    await house.services.uses.flush();
    await use(wallet, allowed!);
    await use(wallet, denied!);
    await house.services.uses.add(record('other app', { appId: 'other' }));
    await house.services.uses.add(record('next day', { appId: house.app.id, judgedAtMs: startMs + dayMs }));
    const digest = (body: unknown) => createHash('sha256').update(JSON.stringify(body)).digest('hex');
    const rows = (await usesKept()).sort((a, b) => (a.decision < b.decision ? -1 : 1));
    expect(rows.map((row) => [row.decision, row.request, row.request_digest, row.trace])).toEqual([
      ['allowed', JSON.stringify(kept), null, null],
      ['allowed', null, digest(allowed), null],
      ['allowed', '{}', null, null],
      ['allowed', '{}', null, null],
      ['denied', null, digest(denied), null],
    ]);
    const sweepAt = (nowMs: number) =>
      sweepExpired({ services: { ...services, clock: { now: () => nowMs } }, inUnit }).run(() => undefined);
    await sweepAt(startMs + 2 * dayMs);
    const days = () =>
      house.database.orm.em.fork().getKysely<Tables>().selectFrom('use_volumes').select('day').execute();
    expect(await days()).toEqual([{ day: (startMs + dayMs) / dayMs }]);
  });

  test('records that cannot be stored wait, and callers wait when there are too many', async () => {
    let isAway = true;
    const failures: unknown[] = [];
    const log = createUseLog({
      inUnit: (work) => (isAway ? Promise.reject(new Error('the database is away')) : inUnit(work)),
      log: { ...services.log, error: (fields) => void failures.push(fields) },
    });
    for (let number = 0; number < 5000; number += 1) await log.add(record(`${number}`));
    await expect(log.flush()).rejects.toThrow('the database is away');
    await expect(log.add(record('5000'))).rejects.toThrow('the database is away');
    isAway = false;
    await log.add(record('5001'));
    const ids = (await usesKept()).map(({ request_id: id }) => Number(id));
    expect(ids).toEqual(Array.from({ length: 5002 }, (_, index) => index));
  });

  test('uses of an app that moved while the process was suspended are stored where the app is', async () => {
    const departures = watchDepartures({ log: silentLog, cell: 'old' });
    const hear = (number: number, state: MoveState) =>
      departures.watch.note([{ number, state, appId: 'acme', moveId: '1-a' }]);
    let isCertain = false;
    departures.connect({
      alive: {
        isCertain: () => isCertain,
        // The first heartbeat after the pause brings the news.
        async confirm() {
          if (!isCertain) hear(2, 'taken');
          isCertain = true;
          return 0;
        },
        beat: async () => undefined,
      },
      jobs: { whileResting: (work) => work() },
      flush: async () => undefined,
    });
    const inNewCell: string[] = [];
    let hasArrived = false;
    const log = createUseLog({
      inUnit: inUnitOf(departures.guard(unitsOf(house.database))),
      log: services.log,
      hasLeft: departures.hasLeft,
      findOther: async () =>
        hasArrived
          ? { add: async ({ requestId }) => void inNewCell.push(requestId), flush: async () => undefined }
          : undefined,
    });
    await log.add(record('late'));
    await log.add(record('neighbour', { appId: 'other' }));
    await expect(log.flush()).rejects.toMatchObject({ code: 'unavailable' });
    await log.flush();
    expect((await usesKept()).map(({ request_id: id }) => id)).toEqual(['neighbour']);
    const counted = house.database.orm.em
      .fork()
      .getKysely<Tables>()
      .selectFrom('use_volumes')
      .select('app_id');
    expect(await counted.execute()).toEqual([{ app_id: 'other' }]);
    expect(inNewCell).toEqual([]);
    hasArrived = true;
    await log.flush();
    expect(inNewCell).toEqual(['late']);
    // The app comes back, and its uses are stored here again.
    hear(3, 'arrived');
    await log.add(record('back'));
    await log.flush();
    expect((await usesKept()).map(({ request_id: id }) => id)).toEqual(['neighbour', 'back']);
    expect(inNewCell).toEqual(['late']);
    departures.stop();
  });

  test('uses are deleted after thirty days, oldest first, in bounded batches', async () => {
    const atMs = (number: number) => startMs + (number < 2500 ? 0 : number);
    for (let number = 0; number < 2503; number += 1)
      await house.services.uses.add(record(`${number}`, { judgedAtMs: atMs(number) }));
    await house.services.uses.flush();
    const sweepAt = (nowMs: number) =>
      sweepExpired({ services: { ...services, clock: { now: () => nowMs } }, inUnit }).run(() => undefined);
    // One by one on PostgreSQL only a week later, because most are dropped with their partition.
    const expiredMs = startMs + (kind === 'postgres' ? 37 : 30) * dayMs;
    expect(await sweepAt(expiredMs - 1)).toBe(false);
    expect(await usesKept()).toHaveLength(2503);
    const rounds = [];
    for (let round = 0; round < 3; round += 1)
      rounds.push([await sweepAt(expiredMs), (await usesKept()).length]);
    expect(rounds).toEqual([
      [true, 1503],
      [true, 503],
      [false, 3],
    ]);
    expect(await sweepAt(expiredMs + 2501)).toBe(false);
    expect((await usesKept()).map(({ request_id: id }) => id)).toEqual(['2502']);
  });

  describe('a draft', () => {
    const checkRequest = createBodyCheck(requestValidators);
    const replay = async (draft: object, wallet: { id: string }, more: object = {}) => {
      await house.services.uses.flush();
      const em = house.database.orm.em.fork();
      const input = { wallet_id: wallet.id, draft: { chain_type: 'ethereum', ...draft } as never, ...more };
      return replayPolicy({ em, nowMs: startMs, checkRequest }, input);
    };

    test('a draft is evaluated against recorded requests and lists the decisions that change', async () => {
      const wallet = await makeWallet([rule('personal_sign', [greeting])]);
      for (const word of ['hello', 'help', 'bye', 'hi']) await use(wallet, sign(word));
      await use(await makeWallet(), sign('of another wallet'));
      const same = await replay({ rules: [rule('personal_sign', [greeting])] }, wallet);
      expect(same).toEqual({
        app_id: house.app.id,
        wallet_id: wallet.id,
        judged: 4,
        changed: 0,
        newly_allowed: 0,
        newly_denied: 0,
        skipped: 0,
        changes: [],
      });
      const rules = [
        rule('personal_sign', [always]),
        { ...rule('personal_sign', [{ ...greeting, operator: 'eq', value: 'help' }], 'DENY'), id: 'no help' },
      ];
      const other = await replay({ rules }, wallet);
      expect(other).toMatchObject({ judged: 4, changed: 3, newly_allowed: 2, newly_denied: 1, skipped: 0 });
      const change = {
        judged_at_ms: Date.UTC(2026, 0, 1),
        request_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        operation: 'walletRpc',
        method: 'personal_sign',
        unit: 'message',
      };
      const allowedNow = {
        ...change,
        was: 'denied',
        would_be: 'allowed',
        outcome: 'allowed',
        rule_id: 'rule 0',
        rule_name: 'ALLOW personal_sign',
      };
      expect(other.changes).toHaveLength(3);
      expect(other.changes.filter(({ was }) => was === 'denied')).toEqual([allowedNow, allowedNow]);
      expect(other.changes.filter(({ was }) => was === 'allowed')).toEqual([
        {
          ...change,
          was: 'allowed',
          would_be: 'denied',
          outcome: 'denied_by_rule',
          rule_id: 'no help',
          rule_name: 'DENY personal_sign',
        },
      ]);
    });

    test('a draft counts running totals as under the draft, at the time of each request', async () => {
      const { body: aggregation } = await house.run('createAggregation', {
        body: {
          name: 'Spent in an hour',
          method: 'eth_signTransaction',
          metric: { field_source: 'ethereum_transaction', field: 'value', function: 'sum' },
          window: { type: 'rolling', seconds: 3600 },
        },
      });
      const cap = {
        field_source: 'reference',
        field: `aggregation.${(aggregation as { id: string }).id}`,
        operator: 'lte',
        value: '100',
      };
      const draft = { rules: [rule('eth_signTransaction', [cap])] };
      const wallet = await makeWallet();
      const pay = (minute: number, value: number) =>
        house.services.uses.add(
          record(`${minute}`, {
            appId: house.app.id,
            walletId: wallet.id,
            method: 'eth_signTransaction',
            judgedAtMs: startMs + minute * 60_000,
            request: JSON.stringify({
              method: 'eth_signTransaction',
              params: { transaction: { chain_id: 1, value } },
            }),
          }),
        );
      // 60 | 60+50 is too much and not counted | 60+40 | at 60 the first has left: 40+60 | 40+60+1
      for (const [minute, value] of [
        [0, 60],
        [10, 50],
        [20, 40],
        [60, 60],
        [61, 1],
      ] as const)
        await pay(minute, value);
      await house.services.uses.add(
        record('large', { appId: house.app.id, walletId: wallet.id, request: null }),
      );
      const whole = await replay(draft, wallet);
      expect(whole).toMatchObject({ judged: 5, newly_denied: 2, skipped: 1 });
      expect(whole.changes.map(({ request_id: id }) => id)).toEqual(['10', '61']);
      // Requests signed before `since_ms` count as originally decided: 110 by then.
      const late = await replay(draft, wallet, { since_ms: startMs + 15 * 60_000 });
      expect(late).toMatchObject({ judged: 3, skipped: 0 });
      expect(late.changes.map(({ request_id: id }) => id)).toEqual(['20', '60']);
      await house.run('deleteAggregation', { path: { aggregation_id: (aggregation as { id: string }).id } });
    });

    test('that is invalid or for another chain is refused with the position', async () => {
      const wallet = await makeWallet();
      const wrong = [{ ...rule('personal_sign', [greeting]), method: 'signTransaction' }];
      await expect(replay({ rules: wrong }, wallet)).rejects.toMatchObject({
        code: 'invalid_policy_format',
        data: { issues: [{ in: 'body', pointer: '/draft/rules/0/method' }] },
      });
      await expect(replay({ rules: [], chain_type: 'solana' }, wallet)).rejects.toMatchObject({
        code: 'invalid_data',
        data: { issues: [{ pointer: '/draft/chain_type' }] },
      });
      await expect(replay({ rules: [] }, { id: 'nothing' })).rejects.toMatchObject({ code: 'not_found' });
    });
  });
});
