import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import type { CreateAggregationRequest } from '../../../src/generated/schemas.ts';
import { call, refusal } from '../../support/call.ts';
import { authorize } from '../../support/intents.ts';
import { configureApp } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { allow, allowed, denied, outcome, payment, type Rule } from './enforced/policies.ts';

// A change of a condition set or an aggregation changes what the policies that refer to it allow.

const alice = { public_key: aliceKey.publicKey };
const bob = { public_key: bobKey.publicKey };
const byAlice = { signWith: [aliceKey.privateKey] };
const friend = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const stranger = '0x9858EfFD232B4033E47d90003D41EC34EcaEda94';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
beforeEach(() => configureApp(sandbox, { policy_parts_require_owner: true }));
afterAll(() => sandbox[Symbol.asyncDispose]());

type Owner = { public_key: string } | undefined;
const ownedBy = (owner: Owner) => (owner === undefined ? {} : { owner });

async function makeSet(owner?: Owner): Promise<string> {
  return (await call(sandbox, 'createConditionSet', { body: { name: 'Payees', ...ownedBy(owner) } })).body.id;
}

async function makeTotal(owner?: Owner): Promise<string> {
  const body = {
    name: 'Spent',
    method: 'eth_signTransaction',
    metric: { field_source: 'ethereum_transaction', field: 'value', function: 'sum' },
    window: { type: 'rolling', seconds: 3600 },
    ...ownedBy(owner),
  } as CreateAggregationRequest;
  return (await call(sandbox, 'createAggregation', { body })).body.id;
}

const payTo = (set: string): Rule =>
  allow('eth_signTransaction', {
    field_source: 'ethereum_transaction',
    field: 'to',
    operator: 'in_condition_set',
    value: set,
  });
const payUpTo = (total: string): Rule =>
  allow('eth_signTransaction', {
    field_source: 'reference',
    field: `aggregation.${total}`,
    operator: 'lte',
    value: '100',
  } as Rule['conditions'][number]);

const policyOf = (rules: Rule[], owner?: Owner) =>
  ({ version: '1.0', name: 'Payees', chain_type: 'ethereum', rules, ...ownedBy(owner) }) as const;
const makePolicy = async (rules: Rule[], owner?: Owner) =>
  (await call(sandbox, 'createPolicy', { body: policyOf(rules, owner) })).body;

/** Status, code and the field that a refusal names. */
async function refused(operation: Parameters<typeof refusal>[1], input: object): Promise<unknown> {
  const { status, body } = await refusal(sandbox, operation, input as never, byAlice);
  const { issues } = body.data as { issues: { pointer: string }[] };
  return [status, body.code, issues[0]?.pointer];
}

const invalid = (pointer: string) => [400, 'invalid_data', pointer];

test('without the safeguard, an owned policy is changed through its ownerless condition set', async () => {
  await configureApp(sandbox, { policy_parts_require_owner: null });
  const set = await makeSet();
  const policy = await makePolicy([payTo(set)], alice);
  const { body: wallet } = await call(sandbox, 'createWallet', {
    body: { chain_type: 'ethereum', policy_ids: [policy.id] },
  });
  const pay = () => outcome(sandbox, 'walletRpc', { wallet, body: payment({ to: stranger }) });
  expect(await pay()).toBe(denied);
  const direct = await refusal(sandbox, 'updatePolicy', {
    path: { policy_id: policy.id },
    body: { rules: [] },
  });
  expect(direct.status).toBe(401);
  // No owner signs.
  const path = { condition_set_id: set };
  await call(sandbox, 'addConditionSetItems', { path, body: [{ value: stranger }] });
  expect(await pay()).toBe(allowed);
});

test('an owned policy cannot be made with parts of another owner or of none', async () => {
  for (const owner of [undefined, bob]) {
    const body = policyOf([payTo(await makeSet(alice)), payTo(await makeSet(owner))], alice);
    expect(await refused('createPolicy', { body })).toEqual(invalid('/rules/1/conditions/0/value'));
    const capped = policyOf([payUpTo(await makeTotal(owner))], alice);
    expect(await refused('createPolicy', { body: capped })).toEqual(invalid('/rules/0/conditions/0/field'));
  }
});

test('a policy of the same owner, and one without an owner, take them', async () => {
  const [set, total] = [await makeSet(alice), await makeTotal(alice)];
  const { id } = await makePolicy([payTo(set), payUpTo(total)], alice);
  await call(
    sandbox,
    'updatePolicy',
    { path: { policy_id: id }, body: { rules: [payUpTo(total)] } },
    byAlice,
  );
  await makePolicy([payTo(await makeSet(bob)), payTo(await makeSet())]);
});

test('every way to change rules is refused, directly and as an intent', async () => {
  const { id, rules } = await makePolicy([payTo(await makeSet(alice))], alice);
  const foreign = payTo(await makeSet());
  const path = { policy_id: id };
  const rulePath = { ...path, rule_id: rules[0]!.id };
  const inRules = { path, body: { rules: [foreign] } };
  for (const operation of ['updatePolicy', 'updatePolicyIntent'] as const) {
    expect(await refused(operation, inRules)).toEqual(invalid('/rules/0/conditions/0/value'));
  }
  for (const operation of ['createPolicyRule', 'createPolicyRuleIntent'] as const) {
    expect(await refused(operation, { path, body: foreign })).toEqual(invalid('/conditions/0/value'));
  }
  for (const operation of ['updatePolicyRule', 'updatePolicyRuleIntent'] as const) {
    expect(await refused(operation, { path: rulePath, body: foreign })).toEqual(
      invalid('/conditions/0/value'),
    );
  }
  expect((await call(sandbox, 'getPolicy', { path })).body.rules).toEqual(rules);
});

test("a change of the policy's owner is refused while its parts belong to others", async () => {
  const set = await makeSet(alice);
  const { id, owner_id } = await makePolicy([payTo(set)], alice);
  const path = { policy_id: id };
  for (const operation of ['updatePolicy', 'updatePolicyIntent'] as const) {
    expect(await refused(operation, { path, body: { owner: bob } })).toEqual(invalid('/owner'));
  }
  const free = await makePolicy([payTo(await makeSet())]);
  const freePath = { policy_id: free.id };
  expect(await refused('updatePolicy', { path: freePath, body: { owner_id } })).toEqual(invalid('/owner_id'));
  // With rules that fit, both change at once.
  await call(sandbox, 'updatePolicy', { path: freePath, body: { owner_id, rules: [payTo(set)] } });
});

test('an intent that was proposed before is refused when it is executed', async () => {
  await configureApp(sandbox, { policy_parts_require_owner: false });
  const { id, rules } = await makePolicy([payTo(await makeSet(alice))], alice);
  const path = { policy_id: id };
  const { body: intent } = await call(sandbox, 'createPolicyRuleIntent', {
    path,
    body: payTo(await makeSet()),
  });
  await configureApp(sandbox, { policy_parts_require_owner: true });
  const { status } = await authorize(sandbox, intent, aliceKey.privateKey);
  expect(status).toBe('failed');
  expect((await call(sandbox, 'getPolicy', { path })).body.rules).toEqual(rules);
});

test('a policy made before keeps its references, can be renamed, and loses rules', async () => {
  await configureApp(sandbox, { policy_parts_require_owner: false });
  const set = await makeSet();
  const { id, rules } = await makePolicy([payTo(set), payTo(set)], alice);
  await configureApp(sandbox, { policy_parts_require_owner: true });
  const path = { policy_id: id };
  const rulePath = { ...path, rule_id: rules[0]!.id };
  await call(sandbox, 'updatePolicy', { path, body: { name: 'Renamed' } }, byAlice);
  await call(sandbox, 'deletePolicyRule', { path: rulePath }, byAlice);
  // A deleted set cannot be changed either, so it does not keep a policy from changing hands.
  await call(sandbox, 'deleteConditionSet', { path: { condition_set_id: set } });
  await call(sandbox, 'updatePolicy', { path, body: { owner: bob } }, byAlice);
});

test('the setting takes true or false', async () => {
  await expect(configureApp(sandbox, { policy_parts_require_owner: friend })).rejects.toThrow(
    '/settings/policy_parts_require_owner: expected true or false',
  );
});
