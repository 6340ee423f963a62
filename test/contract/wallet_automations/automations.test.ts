import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AutomationConfigInput } from '../../../src/generated/schemas.ts';
import { call, refusal } from '../../support/call.ts';
import { asOtherApp } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { makePair, signedByPair } from '../policies/owner-signatures.ts';
import { seededStartMs, unknownId } from '../policies/rules.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const usdcOnBase = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const toUsdc: AutomationConfigInput = {
  trigger: { type: 'deposit', assets: { mode: 'exclude', values: [{ asset: 'usdc', chain: 'base' }] } },
  action: { type: 'swap', destination_chain_asset: { asset: 'usdc', chain: 'base' } },
};
const resolved = {
  trigger: {
    type: 'deposit',
    assets: { mode: 'exclude', values: [{ asset_address: usdcOnBase, caip2: 'eip155:8453' }] },
  },
  action: { type: 'swap', destination_chain_asset: { asset_address: usdcOnBase, caip2: 'eip155:8453' } },
};
const notFound = { status: 404, body: { error: 'Automation not found' } };

test('an automation is created with names resolved, read, changed and deleted', async () => {
  const { body: made } = await call(sandbox, 'createWalletAutomation', {
    body: { name: 'Everything to USDC', owner_id: null, config: toUsdc },
  });
  const at = new Date(seededStartMs).toISOString();
  expect(made).toEqual({
    id: expect.stringMatching(/^[a-z][0-9a-z]{23}$/),
    app_id: sandbox.appId,
    name: 'Everything to USDC',
    owner_id: null,
    status: 'enabled',
    config: resolved,
    created_at: at,
    updated_at: at,
  });
  const path = { automation_id: made.id };
  expect((await call(sandbox, 'getWalletAutomation', { path })).body).toEqual(made);
  const native = { trigger: { type: 'deposit', assets: { mode: 'all' } }, action: toUsdc.action } as const;
  const body = { name: null, enabled: false, config: native };
  const { body: changed } = await call(sandbox, 'updateWalletAutomation', { path, body });
  expect(changed).toEqual({
    ...made,
    name: null,
    status: 'disabled',
    config: { ...resolved, trigger: native.trigger },
  });
  expect((await call(sandbox, 'deleteWalletAutomation', { path })).body).toEqual({ success: true });
  expect(await refusal(sandbox, 'getWalletAutomation', { path })).toEqual(notFound);
});

test.each([
  ['both names of an asset', { asset: 'usdc', asset_address: usdcOnBase, chain: 'base' }, ''],
  ['neither name of an asset', { chain: 'base', caip2: 'eip155:8453' }, ''],
  ['both names of a chain', { asset: 'usdc', chain: 'base', caip2: 'eip155:8453' }, ''],
  ['no chain', { asset: 'usdc', asset_address: usdcOnBase }, ''],
  ['an unknown chain', { asset: 'usdc', chain: 'moon' }, '/chain'],
  ['an unknown CAIP-2 id', { asset: 'usdc', caip2: 'eip155:2' }, '/caip2'],
  ['an asset that the chain lacks', { asset: 'pol', chain: 'base' }, '/asset'],
  ['an address of another chain type', { asset_address: usdcOnBase, chain: 'solana' }, '/asset_address'],
  ['a native asset where there is none', { asset_address: 'native', chain: 'tempo' }, '/asset_address'],
])('%s is refused', async (_, spec, field) => {
  const action = { type: 'swap', destination_chain_asset: spec };
  const answer = await refusal(sandbox, 'createWalletAutomation', {
    body: { owner_id: null, config: { ...toUsdc, action } },
  });
  expect(answer.status).toBe(400);
  expect(answer.body.code).toBe('invalid_data');
  expect(answer.body.error).toContain(`/config/action/destination_chain_asset${field}:`);
});

test('an owner, a vault and fields that do not exist are refused', async () => {
  const { body: made } = await call(sandbox, 'createWalletAutomation', {
    body: { owner_id: null, config: toUsdc },
  });
  const path = { automation_id: made.id };
  const earn = { ...toUsdc, action: { type: 'earn_deposit', vault_id: unknownId } };
  for (const body of [
    { owner_id: unknownId, config: toUsdc },
    { owner_id: null, config: earn },
    { owner_id: null, config: toUsdc, name: '' },
    { owner_id: null, config: toUsdc, color: 'red' },
  ]) {
    for (const answer of [
      await refusal(sandbox, 'createWalletAutomation', { body }),
      await refusal(sandbox, 'updateWalletAutomation', { path, body }),
    ]) {
      expect([answer.status, answer.body.code], JSON.stringify(body)).toEqual([400, 'invalid_data']);
    }
  }
  expect((await refusal(sandbox, 'updateWalletAutomation', { path, body: {} })).status).toBe(400);
  expect((await call(sandbox, 'getWalletAutomation', { path })).body).toEqual(made);
});

test('the owner is changed and removed with its signatures, and cannot be deleted while it owns one', async () => {
  const owner_id = await makePair(sandbox);
  const { body: made } = await call(sandbox, 'createWalletAutomation', {
    body: { owner_id, config: toUsdc },
  });
  expect(made.owner_id).toBe(owner_id);
  const quorum = { path: { key_quorum_id: owner_id } };
  const kept = await refusal(sandbox, 'deleteKeyQuorum', quorum, signedByPair);
  expect(kept.body.error).toContain('the owner of an automation');
  const path = { automation_id: made.id };
  const freed = await call(
    sandbox,
    'updateWalletAutomation',
    { path, body: { owner_id: null } },
    signedByPair,
  );
  expect(freed.body.owner_id).toBeNull();
  await call(sandbox, 'deleteKeyQuorum', quorum, signedByPair);
  await call(sandbox, 'updateWalletAutomation', { path, body: { enabled: false } });
});

test('automations are listed newest first, page by page; another app sees none', async () => {
  const other = await asOtherApp(sandbox);
  const made: string[] = [];
  for (let count = 0; count < 3; count += 1) {
    const { body } = await call(other, 'createWalletAutomation', {
      body: { owner_id: null, config: toUsdc },
    });
    made.push(body.id);
    sandbox.clock.advance(1);
  }
  const { body: first } = await call(other, 'listWalletAutomations', { query: { limit: 2 } });
  expect(first.data.map(({ id }) => id)).toEqual([made[2], made[1]]);
  const cursor = first.next_cursor!;
  const { body: second } = await call(other, 'listWalletAutomations', { query: { limit: 2, cursor } });
  expect([second.data.map(({ id }) => id), second.next_cursor]).toEqual([[made[0]], null]);
  const { body: own } = await call(sandbox, 'listWalletAutomations', {});
  expect(own.data.filter(({ id }) => made.includes(id))).toEqual([]);
  const path = { automation_id: made[0]! };
  expect(await refusal(sandbox, 'getWalletAutomation', { path })).toEqual(notFound);
  expect(await refusal(sandbox, 'deleteWalletAutomation', { path })).toEqual(notFound);
  expect(await refusal(sandbox, 'updateWalletAutomation', { path, body: { name: 'x' } })).toEqual(notFound);
  const bad = await refusal(sandbox, 'listWalletAutomations', { query: { cursor: made[0] } });
  expect([bad.status, bad.body.code]).toEqual([400, 'invalid_data']);
});
