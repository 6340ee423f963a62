import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type OperationId, operations } from '../../../src/generated/operations.ts';
import { attempt, call } from '../../support/call.ts';
import { authorize, intentEvents, readIntent } from '../../support/intents.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { messageRule } from '../policies/rules.ts';
import { alice, bob, worldOf } from './world.ts';

let sandbox: TestSandbox;
let world: ReturnType<typeof worldOf>;
beforeAll(async () => {
  sandbox = await startSandbox();
  world = worldOf(sandbox);
});
afterAll(() => sandbox[Symbol.asyncDispose]());

interface Change {
  readonly path: object;
  readonly body?: unknown;
}

/** An owned resource, a pending intent about it, and an operation that changes it. */
const subjects = {
  policy: async () => {
    const policy = await world.policy();
    const { body: intent } = await call(sandbox, 'updatePolicyIntent', {
      path: { policy_id: policy.id },
      body: { name: 'Proposed' },
    });
    return { intent, path: { policy_id: policy.id, rule_id: policy.rules[0]!.id } };
  },
  wallet: async () => {
    const wallet = await world.wallet();
    return { intent: await world.proposeMessage(wallet.id), path: { wallet_id: wallet.id } };
  },
  quorum: async () => {
    const quorum = await world.quorum();
    const { body: intent } = await call(sandbox, 'updateKeyQuorumIntent', {
      path: { key_quorum_id: quorum.id },
      body: { display_name: 'Proposed' },
    });
    return { intent, path: { key_quorum_id: quorum.id } };
  },
  set: async () => {
    const set = await world.conditionSet();
    const path = { condition_set_id: set.id };
    const items = await call(
      sandbox,
      'addConditionSetItems',
      { path, body: [{ value: 'old' }] },
      { signWith: [alice, bob] },
    );
    const { body: intent } = await call(sandbox, 'addConditionSetItemsIntent', {
      path,
      body: [{ value: 'proposed' }],
    });
    return { intent, path: { ...path, condition_set_item_id: items.body[0]!.id } };
  },
};

type Dismissing = [keyof typeof subjects, unknown, string];

/** Every operation that changes or deletes a resource whose changes can be proposed. */
const dismissing: Partial<Record<OperationId, Dismissing>> = {
  updatePolicy: ['policy', { name: 'Changed' }, 'The policy was changed.'],
  deletePolicy: ['policy', undefined, 'The policy was deleted.'],
  createPolicyRule: ['policy', messageRule('new'), 'The policy was changed.'],
  updatePolicyRule: ['policy', messageRule('new'), 'The policy was changed.'],
  deletePolicyRule: ['policy', undefined, 'The policy was changed.'],
  updateKeyQuorum: ['quorum', { display_name: 'Changed' }, 'The key quorum was changed.'],
  deleteKeyQuorum: ['quorum', undefined, 'The key quorum was deleted.'],
  updateWallet: ['wallet', { display_name: 'Changed' }, 'The wallet was changed.'],
  archiveWallet: ['wallet', undefined, 'The wallet was archived.'],
  updateConditionSet: ['set', { name: 'Changed' }, 'The condition set was changed.'],
  deleteConditionSet: ['set', undefined, 'The condition set was deleted.'],
  addConditionSetItems: ['set', [{ value: 'new' }], 'The condition set was changed.'],
  replaceConditionSetItems: ['set', [{ value: 'new' }], 'The condition set was changed.'],
  deleteConditionSetItem: ['set', undefined, 'The condition set was changed.'],
};

/** Operations that do not change the resource. */
const leaving = new Set<OperationId>([
  // Uses of the wallet's key and its assets.
  'walletRpc',
  'rawSignWallet',
  'exportWallet',
  'transferFromWallet',
  'quoteWalletTransfer',
  'executeWalletSwap',
  'quoteWalletSwap',
  'createFiatPayout',
  'depositEthereumEarn',
  'withdrawEthereumEarn',
  'claimEthereumEarnIncentive',
  'collectEthereumEarnFees',
  // Bookkeeping that does not require the owner.
  'assignWalletEntity',
  'createCryptoDepositAccount',
  'createFiatDepositAccount',
  'attachWalletAutomations',
  'detachWalletAutomations',
]);

test('for every operation on an owned resource it is defined whether it dismisses intents', () => {
  const owned = /\{(wallet_id|policy_id|key_quorum_id|condition_set_id)\}/;
  const changing = Object.values(operations)
    .filter(({ method, path }) => method !== 'GET' && owned.test(path) && !path.startsWith('/v1/intents/'))
    .map(({ id }) => id);
  const known = [...(Object.keys(dismissing) as OperationId[]), ...leaving];
  expect(changing.filter((id) => !known.includes(id))).toEqual([]);
  expect(known.filter((id) => !changing.includes(id))).toEqual([]);
});

describe.each(Object.entries(dismissing) as [OperationId, Dismissing][])(
  '%s',
  (operation, [subject, body, reason]) => {
    test('dismisses intents, unless it is refused', async () => {
      const { intent, path } = await subjects[subject]();
      const bystander = (await subjects[subject]()).intent;
      const change: Change = { path, body };
      if (operation !== 'archiveWallet') {
        const refused = await attempt(sandbox, operation, change, { signWith: [alice] });
        expect(refused.status).toBe(401);
      }
      expect((await readIntent(sandbox, intent)).status).toBe('pending');
      const before = await readIntent(sandbox, intent);
      sandbox.clock.advance(1_000);
      const done = await attempt(sandbox, operation, change, { signWith: [alice, bob] });
      expect(done.status, JSON.stringify(done.body)).toBe(200);
      const after = await readIntent(sandbox, intent);
      expect(after).toMatchObject({
        status: 'dismissed',
        dismissed_at: sandbox.clock.now(),
        dismissal_reason: reason,
        authorization_details: before.authorization_details,
        request_details: before.request_details,
      });
      const isGone = /^delete(Policy|KeyQuorum|ConditionSet)$/.test(operation);
      expect('current_resource_data' in after).toBe(!isGone);
      expect(after).not.toHaveProperty('action_result');
      expect((await readIntent(sandbox, bystander)).status).toBe('pending');
      // There is no event for it.
      expect((await intentEvents(sandbox, intent.intent_id)).map(({ type }) => type)).toEqual([
        'intent.created',
      ]);
    });
  },
);

test('an executed intent dismisses the others about its resource and records that', async () => {
  const policy = await world.policy();
  const propose = async (name: string) =>
    (await call(sandbox, 'updatePolicyIntent', { path: { policy_id: policy.id }, body: { name } })).body;
  const rule = { policy_id: policy.id, rule_id: policy.rules[0]!.id };
  const [winner, loser] = [await propose('Winner'), await propose('Loser')];
  const { body: removal } = await call(sandbox, 'deletePolicyRuleIntent', { path: rule });
  await authorize(sandbox, winner, alice);
  await authorize(sandbox, loser, alice);
  expect((await authorize(sandbox, winner, bob)).status).toBe('executed');
  for (const intent of [loser, removal]) {
    expect(await readIntent(sandbox, intent)).toMatchObject({
      status: 'dismissed',
      dismissal_reason: `The policy was changed by the intent \`${winner.intent_id}\`.`,
    });
  }
});

test('an expired intent is not dismissed', async () => {
  const policy = await world.policy();
  const { body: intent } = await call(
    sandbox,
    'updatePolicyIntent',
    { path: { policy_id: policy.id }, body: { name: 'Late' } },
    { expiryMs: sandbox.clock.now() + 1_000 },
  );
  sandbox.clock.advance(1_001);
  await call(
    sandbox,
    'updatePolicy',
    { path: { policy_id: policy.id }, body: { name: 'Changed' } },
    { signWith: [alice, bob] },
  );
  expect((await readIntent(sandbox, intent)).status).toBe('expired');
});
