import { expect, test } from 'vitest';
import { aliceKey } from '../../../mocks/authorization-keys.ts';
import type { PolicyRuleInput } from '../../../src/generated/schemas.ts';
import { call, refusal } from '../../support/call.ts';
import { asOtherApp } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

const spending: PolicyRuleInput = {
  ...{ name: 'Pay anyone', method: 'eth_signTransaction', conditions: [], action: 'ALLOW' },
};

const lists = [
  {
    list: 'listPolicies',
    async make(sandbox: TestSandbox, name: string) {
      const made = await call(sandbox, 'createPolicy', {
        body: { version: '1.0', name, chain_type: 'ethereum', rules: [spending] },
      });
      const { rules: _, ...summary } = made.body;
      return summary;
    },
  },
  {
    list: 'listKeyQuorums',
    async make(sandbox: TestSandbox, name: string) {
      const { body: inner } = await call(sandbox, 'createKeyQuorum', {
        body: { display_name: 'inner', public_keys: [aliceKey.publicKey] },
      });
      sandbox.clock.advance(1);
      const body = { display_name: name, public_keys: [aliceKey.publicKey], key_quorum_ids: [inner.id] };
      return (await call(sandbox, 'createKeyQuorum', { body })).body;
    },
  },
  {
    list: 'listConditionSets',
    make: async (sandbox: TestSandbox, name: string) =>
      (await call(sandbox, 'createConditionSet', { body: { name } })).body,
  },
] as const;

test.each(lists)('$list goes from the newest to the oldest, one page at a time', async ({ list, make }) => {
  await using sandbox = await startSandbox();
  const { body: planted } = await call(sandbox, list, {});
  const made: { readonly id: string }[] = [];
  for (const name of ['First', 'Second', 'Third']) {
    sandbox.clock.advance(1);
    made.unshift(await make(sandbox, name));
  }
  const all = await call(sandbox, list, {});
  const ours = all.body.data.filter(({ id }) => made.some((one) => one.id === id));
  expect(ours).toEqual(made);
  expect(all.body.data.slice(-planted.data.length || all.body.data.length)).toEqual(planted.data);
  expect(all.body.next_cursor).toBeNull();

  const paged: unknown[] = [];
  let cursor: string | undefined;
  do {
    const query = { limit: 2, ...(cursor !== undefined && { cursor }) };
    const { body } = await call(sandbox, list, { query });
    expect(body.data.length).toBeLessThanOrEqual(2);
    paged.push(...body.data);
    cursor = body.next_cursor ?? undefined;
  } while (cursor !== undefined);
  expect(paged).toEqual(all.body.data);

  const other = await asOtherApp(sandbox);
  expect((await call(other, list, {})).body).toEqual({ data: [], next_cursor: null });
  for (const [app, query] of [
    [sandbox, { cursor: 'z'.repeat(24) }],
    [other, { cursor: made[0]!.id }],
    [sandbox, { limit: 0 }],
    [sandbox, { limit: 101 }],
  ] as const) {
    const { status, body } = await refusal(app, list, { query });
    expect({ status, code: body.code }).toEqual({ status: 400, code: 'invalid_data' });
  }
});

test('a listed policy has the members of the contract, without its rules', async () => {
  await using sandbox = await startSandbox();
  const { body: made } = await call(sandbox, 'createPolicy', {
    body: { version: '1.0', name: 'Pay', chain_type: 'solana', rules: [] },
  });
  const { body: listed } = await call(sandbox, 'listPolicies', {});
  expect(listed.data.find(({ id }) => id === made.id)).toEqual({
    ...{ id: made.id, version: '1.0', name: 'Pay', chain_type: 'solana', owner_id: null },
    created_at: sandbox.clock.now(),
  });
});

test('key quorums that were made for an owner are listed', async () => {
  await using sandbox = await startSandbox();
  const { body: set } = await call(sandbox, 'createConditionSet', {
    body: { name: 'Owned', owner: { public_key: aliceKey.publicKey } },
  });
  const { body } = await call(sandbox, 'listKeyQuorums', {});
  expect(body.data.map(({ id }) => id)).toContain(set.owner_id);
});
