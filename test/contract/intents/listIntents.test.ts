import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aliceKey, bobKey, carolKey } from '../../../mocks/authorization-keys.ts';
import type { Operations } from '../../../src/generated/operations.ts';
import type { IntentResponse } from '../../../src/generated/schemas.ts';
import { call, refusal } from '../../support/call.ts';
import { authorize } from '../../support/intents.ts';
import { asOtherApp } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { messageRule } from '../policies/rules.ts';
import { alice, bob, logIn, worldOf } from './world.ts';

type Query = Operations['listIntents']['query'];

let sandbox: TestSandbox;
let world: ReturnType<typeof worldOf>;
let intents: Record<'rule' | 'rename' | 'signing' | 'short' | 'quorum' | 'items', IntentResponse>;
let walletId: string;
let owners: { treasury: string; inner: string; outer: string };

// Six intents, a second apart: one executed (which dismisses a second), one that expires early, one of another owner.
beforeAll(async () => {
  sandbox = await startSandbox();
  world = worldOf(sandbox);
  const treasury = (await world.quorum()).id;
  const inner = await world.quorum({ public_keys: [aliceKey.publicKey, bobKey.publicKey] });
  const outer = await world.quorum({ key_quorum_ids: [inner.id], public_keys: [carolKey.publicKey] });
  owners = { treasury, inner: inner.id, outer: outer.id };
  const policy = await world.policy(['rent'], { owner_id: treasury });
  walletId = (await world.wallet({ owner_id: treasury })).id;
  const set = await world.conditionSet({ owner_id: owners.outer });
  const tick = () => sandbox.clock.advance(1_000);
  const path = { policy_id: policy.id };
  const rule = (await call(sandbox, 'createPolicyRuleIntent', { path, body: messageRule('x') })).body;
  tick();
  const rename = (await call(sandbox, 'updatePolicyIntent', { path, body: { name: 'New' } })).body;
  tick();
  const signing = await world.proposeMessage(walletId);
  tick();
  const short = await world.proposeMessage(walletId, 'short', { expiryMs: sandbox.clock.now() + 10_000 });
  tick();
  const quorum = (
    await call(sandbox, 'updateKeyQuorumIntent', {
      path: { key_quorum_id: treasury },
      body: { display_name: 'Renamed' },
    })
  ).body;
  tick();
  const items = (
    await call(sandbox, 'addConditionSetItemsIntent', {
      path: { condition_set_id: set.id },
      body: [{ value: 'a' }],
    })
  ).body;
  tick();
  await authorize(sandbox, signing, alice);
  tick();
  await authorize(sandbox, rule, alice);
  await authorize(sandbox, rule, bob);
  intents = { rule, rename, signing, short, quorum, items };
});
afterAll(() => sandbox[Symbol.asyncDispose]());

type Name = keyof typeof intents;

async function list(query: Query, options: object = {}): Promise<Name[]> {
  const { body } = await call(sandbox, 'listIntents', { query }, options);
  const names = new Map(Object.entries(intents).map(([name, { intent_id: id }]) => [id, name as Name]));
  return body.data.map(({ intent_id: id }) => names.get(id)!);
}

async function refused(query: object, options: object = {}): Promise<string> {
  const { status, body } = await refusal(sandbox, 'listIntents', { query }, options);
  return `${status} ${body.code} ${body.error}`;
}

describe('the order', () => {
  test('the order is by creation by default', async () => {
    const newestFirst = ['items', 'quorum', 'short', 'signing', 'rename', 'rule'];
    expect(await list({})).toEqual(newestFirst);
    expect(await list({ sort_by: 'created_at_desc' })).toEqual(newestFirst);
    expect(await list({ sort_by: 'expires_at_asc' })).toEqual([
      'short',
      'rule',
      'rename',
      'signing',
      'quorum',
      'items',
    ]);
    const changed = await list({ sort_by: 'updated_at_desc' });
    // Executed and dismissed in the same millisecond.
    expect(changed.slice(0, 2).sort()).toEqual(['rename', 'rule']);
    expect(changed.slice(2)).toEqual(['signing', 'items', 'quorum', 'short']);
  });

  test.each(['created_at_desc', 'expires_at_asc', 'updated_at_desc'] as const)(
    '%s works across pages of any size',
    async (sortBy) => {
      const all = await list({ sort_by: sortBy });
      for (const limit of [1, 2, 4]) {
        const seen: string[] = [];
        for (let cursor: string | null | undefined; cursor !== null; ) {
          const query = { sort_by: sortBy, limit, ...(cursor === undefined ? {} : { cursor }) };
          const { body } = await call(sandbox, 'listIntents', { query });
          expect(body.data.length).toBeLessThanOrEqual(limit);
          seen.push(...body.data.map(({ intent_id: id }) => id));
          cursor = body.next_cursor;
        }
        expect(seen).toEqual(all.map((name) => intents[name].intent_id));
      }
    },
  );
});

describe('the filters', () => {
  test('by status, kind, resource and creator', async () => {
    expect(await list({ status: 'pending' })).toEqual(['items', 'quorum', 'short', 'signing']);
    expect(await list({ status: 'executed' })).toEqual(['rule']);
    expect(await list({ status: 'dismissed' })).toEqual(['rename']);
    expect(await list({ status: 'failed' })).toEqual([]);
    expect(await list({ intent_type: 'RPC' })).toEqual(['short', 'signing']);
    expect(await list({ intent_type: 'KEY_QUORUM', status: 'pending' })).toEqual(['quorum']);
    expect(await list({ resource_id: walletId })).toEqual(['short', 'signing']);
    expect(await list({ created_by_id: 'did:service:cunknown' })).toEqual([]);
    for (const unknown of ['x'.repeat(256), "' or 1=1"]) {
      expect(await list({ resource_id: unknown })).toEqual([]);
      expect(await list({ created_by_id: unknown })).toEqual([]);
      const absent = await refusal(sandbox, 'getIntent', { path: { intent_id: unknown } });
      expect([400, 404, 414, 431]).toContain(absent.status);
    }
  });

  test('by a member who can still sign', async () => {
    const pending = (member: string) => list({ pending_member_id: member });
    expect(await pending(aliceKey.publicKey)).toEqual(['items', 'quorum', 'short']);
    expect(await pending(carolKey.publicKey)).toEqual(['items', 'quorum', 'short', 'signing']);
    expect(await pending(owners.treasury)).toEqual(['quorum', 'short', 'signing']);
    expect(await pending(owners.outer)).toEqual(['items']);
    expect(await pending(owners.inner)).toEqual(['items']);
    await authorize(sandbox, intents.items, alice);
    expect(await pending(aliceKey.publicKey)).toEqual(['quorum', 'short']);
    expect(await pending(owners.inner)).toEqual(['items']);
    await authorize(sandbox, intents.items, bob);
    // The inner quorum has agreed, the outer one waits for Carol.
    expect(await pending(owners.inner)).toEqual([]);
    expect(await pending(owners.outer)).toEqual(['items']);
    expect(await pending('did:service:cunknown')).toEqual([]);
    expect(await refused({ pending_member_id: 'nonsense' })).toMatch(/^400 invalid_data pending_member_id: /);
  });

  test('an expired intent is reported as expired everywhere, before and after the expiry is stored', async () => {
    const { short } = intents;
    sandbox.clock.advance(10_000);
    const look = async () => ({
      read: (await call(sandbox, 'getIntent', { path: { intent_id: short.intent_id } })).body.status,
      expired: await list({ status: 'expired' }),
      isPending: (await list({ status: 'pending' })).includes('short'),
      canSign: (await list({ pending_member_id: carolKey.publicKey })).includes('short'),
      pages: [
        ...(await list({ status: 'expired', sort_by: 'expires_at_asc', limit: 1 })),
        ...(await list({ status: 'expired', sort_by: 'updated_at_desc', limit: 1 })),
      ],
    });
    const recorded = {
      read: 'expired',
      expired: ['short'],
      isPending: false,
      canSign: false,
      pages: ['short', 'short'],
    };
    expect(await look()).toEqual(recorded);
    // Moves no time, and lets the jobs run.
    const answer = await sandbox.dispatcher.request({
      origin: sandbox.baseUrl,
      path: '/_sandbox/clock',
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ advance_ms: 1 }),
    });
    await answer.body.dump();
    const [row] = await sandbox.database.orm.em
      .fork()
      .execute<{ status: string }[]>('select status from intents where id = ?', [short.intent_id]);
    expect(row).toEqual({ status: 'expired' });
    expect(await look()).toEqual(recorded);
  });
});

test('invalid filters are refused with the name of the field', async () => {
  expect(await refused({ cursor: 'nonsense' })).toBe(
    '400 invalid_data cursor: expected the `next_cursor` of a previous page',
  );
  expect(await refused({ current_user_has_signed: 'true' })).toMatch(
    /^400 invalid_data current_user_has_signed: /,
  );
  expect(await refused({ status: 'granted' })).toMatch(/^400 invalid_data status: /);
  expect(await refused({ limit: 101 })).toMatch(/^400 invalid_data /);
});

test('another app sees none of the intents, a user only their own', async () => {
  const other = await asOtherApp(sandbox);
  expect((await call(other, 'listIntents', {})).body).toEqual({ data: [], next_cursor: null });
  const [dora] = await logIn(sandbox, 1);
  expect(await list({}, { headers: dora!.headers })).toEqual([]);
  const quorum = await world.quorum({ user_ids: [dora!.id], public_keys: [aliceKey.publicKey] });
  const wallet = await world.wallet({ owner_id: quorum.id });
  intents.signing = await world.proposeMessage(wallet.id);
  expect(await list({}, { headers: dora!.headers })).toEqual(['signing']);
  expect(await list({ pending_member_id: dora!.id })).toEqual(['signing']);
  const bad = await refusal(sandbox, 'listIntents', {}, { headers: { authorization: 'Bearer nonsense' } });
  expect(bad.status).toBe(401);
});
