import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aliceKey } from '../../../mocks/authorization-keys.ts';
import { type OperationId, operations } from '../../../src/generated/operations.ts';
import { type Answer, attempt, call } from '../../support/call.ts';
import { fund } from '../../support/fund.ts';
import { asOtherApp, control } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { documentedOperations, exampleInput } from '../every-operation/documented-operations.ts';

// Every operation with every kind of wrong credentials, and with the right credentials of another app.

type Ids = Readonly<Record<string, string>>;

let sandbox: TestSandbox;
let other: TestSandbox;
let own: Ids;
let foreign: Ids;
beforeAll(async () => {
  sandbox = await startSandbox();
  other = await asOtherApp(sandbox);
  own = await makeOneOfEach(sandbox);
  foreign = await makeOneOfEach(other);
});
afterAll(() => sandbox[Symbol.asyncDispose]());

/** One resource of each kind that operations name in their paths, by the name of the path parameter. */
async function makeOneOfEach(app: TestSandbox): Promise<Ids> {
  const public_keys = [aliceKey.publicKey];
  const user = await call(app, 'createUser', {
    body: { linked_accounts: [{ type: 'email', address: `${app.appId}@example.com` }] },
  });
  const wallet = await call(app, 'createWallet', { body: { chain_type: 'ethereum' } });
  const quorum = await call(app, 'createKeyQuorum', { body: { public_keys } });
  const onBase = { field_source: 'ethereum_transaction', field: 'chain_id', operator: 'eq', value: '8453' };
  const rule = { name: 'base', method: 'eth_signTransaction', action: 'ALLOW', conditions: [onBase] };
  const policy = await call(app, 'createPolicy', {
    body: { version: '1.0', name: 'base', chain_type: 'ethereum', rules: [rule] } as never,
  });
  const owner_id = quorum.body.id;
  const ownedWallet = await call(app, 'createWallet', { body: { chain_type: 'ethereum', owner_id } });
  const set = await call(app, 'createConditionSet', { body: { name: 'payees', owner_id } });
  const items = await call(
    app,
    'addConditionSetItems',
    { path: { condition_set_id: set.body.id }, body: [{ value: 'a' }] },
    { signWith: [aliceKey.privateKey] },
  );
  const aggregation = await call(app, 'createAggregation', {
    body: exampleInput(operationNamed('createAggregation')).body as never,
  });
  const organization = await call(app, 'createOrganization', {
    body: { display_name: 'Acme', default_key_quorum_id: owner_id },
  });
  const automation = await call(app, 'createWalletAutomation', {
    body: {
      owner_id: null,
      config: {
        trigger: { type: 'deposit', assets: { mode: 'all' } },
        action: { type: 'swap', destination_chain_asset: { asset: 'usdc', chain: 'base' } },
      },
    },
  });
  const endpoint = await call(app, 'createWebhookEndpoint', { body: { url: 'https://example.com/hooks' } });
  const account = await call(app, 'createAccount', { body: { wallet_ids: [wallet.body.id] } });
  const intent = await call(app, 'createWalletRpcIntent', {
    path: { wallet_id: ownedWallet.body.id },
    body: { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } } as never,
  });
  await fund(app, wallet.body.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
  const sent = await call(app, 'walletRpc', {
    path: { wallet_id: wallet.body.id },
    body: {
      method: 'eth_sendTransaction',
      caip2: 'eip155:8453',
      params: { transaction: { to: wallet.body.address, value: 1 } },
    } as never,
  });
  const entry = await call(app, 'createAllowlistEntry', {
    path: { app_id: app.appId },
    body: { type: 'email', value: 'someone@example.com' },
  });
  const vault = await control<{ id: string }>(app, 'POST', `apps/${app.appId}/earn_vaults`, {
    ...{ chain: 'base', asset: 'usdc', provider: 'aave', apy_bps: 410, fee_bps: 0 },
    admin_wallet_id: wallet.body.id,
  });
  return {
    app_id: app.appId,
    user_id: user.body.id,
    wallet_id: wallet.body.id,
    key_quorum_id: quorum.body.id,
    policy_id: policy.body.id,
    rule_id: policy.body.rules[0]!.id,
    condition_set_id: set.body.id,
    condition_set_item_id: items.body[0]!.id,
    aggregation_id: aggregation.body.id,
    organization_id: organization.body.id,
    automation_id: automation.body.id,
    endpoint_id: endpoint.body.id,
    account_id: account.body.id,
    intent_id: intent.body.intent_id,
    transaction_id: (sent.body as { data: { transaction_id: string } }).data.transaction_id,
    allowlist_entry_id: entry.body.id,
    vault_id: vault.id,
  };
}

function operationNamed(id: string) {
  return documentedOperations.find(({ operationId }) => operationId === id)!;
}

const basic = (id: string, secret: string) => `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`;
const jwtPart = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** An access token as the app's own, but signed with nothing. */
function unsignedToken({ appId }: TestSandbox, userId: string): string {
  const claims = { iss: 'service', aud: appId, sub: userId, iat: 1, exp: 4_000_000_000, sid: 'a' };
  return `${jwtPart({ alg: 'none', typ: 'JWT' })}.${jwtPart(claims)}.`;
}

/** Headers that must not be accepted, by what is wrong with them. */
const wrongCredentials: Readonly<Record<string, () => Record<string, string | undefined>>> = {
  'no credentials': () => ({ authorization: undefined }),
  'a wrong secret': () => ({ authorization: basic(sandbox.appId, `${sandbox.appSecret}x`) }),
  'an empty secret': () => ({ authorization: basic(sandbox.appId, '') }),
  'an unknown app': () => ({
    authorization: basic('cmunknownunknownunknown00', sandbox.appSecret),
    'service-app-id': 'cmunknownunknownunknown00',
  }),
  'the secret of another app': () => ({ authorization: basic(sandbox.appId, other.appSecret) }),
  'another app than the header names': () => ({ authorization: basic(other.appId, other.appSecret) }),
  'an app id header of another app': () => ({ 'service-app-id': other.appId }),
  'no app id header': () => ({ 'service-app-id': undefined }),
  'text that is not base64': () => ({ authorization: 'Basic ***' }),
  'an unsigned token': () => ({ authorization: `Bearer ${unsignedToken(sandbox, own.user_id!)}` }),
  'the secret as a token': () => ({ authorization: `Bearer ${sandbox.appSecret}` }),
};

/** Client endpoints of the device flow: Basic credentials name the client, and the seeded app admits public clients. */
const clientEndpoints: readonly OperationId[] = ['authorizeOauthDevice', 'exchangeOauthToken'];
const admittedByClientEndpoints = ['no credentials', 'no app id header'];
const contradictory = ['another app than the header names', 'an app id header of another app'];

const guarded = documentedOperations.filter(({ operationId }) => operations[operationId].security !== 'none');

describe.each(Object.keys(wrongCredentials))('%s', (what) => {
  test(`is refused by each of ${guarded.length} operations, whatever is asked`, async () => {
    for (const operation of guarded) {
      const isClientEndpoint = clientEndpoints.includes(operation.operationId);
      if (isClientEndpoint && admittedByClientEndpoints.includes(what)) continue;
      const input = exampleInput(operation);
      const answers = [];
      for (const ids of [own, foreign]) {
        const path = { ...input.path, ...ids };
        answers.push(
          await attempt(
            sandbox,
            operation.operationId,
            { ...input, path },
            { headers: wrongCredentials[what]!() },
          ),
        );
      }
      const [first, second] = answers.map(({ status, body }) => ({
        id: operation.operationId,
        status,
        body,
      }));
      // Without the header the request is incomplete, with two names of a client it contradicts itself; everything
      // else is a question of credentials.
      const isIncomplete = what === 'no app id header' || (isClientEndpoint && contradictory.includes(what));
      const expected = isIncomplete ? 400 : 401;
      expect(first!.status, `${operation.operationId} ${JSON.stringify(first)}`).toBe(expected);
      expect(second).toEqual(first);
    }
  });
});

/** A response without what names the request or the id that was asked for. */
function withoutIds({ status, body }: Answer<unknown>, ids: Ids): { status: number; text: string } {
  let text = JSON.stringify(body ?? null).replace(/"request_id":"[^"]*"/, '');
  for (const id of Object.values(ids)) text = text.replaceAll(id, 'id');
  return { status, text };
}

const named = guarded.filter(({ operationId }) =>
  [...operations[operationId].path.matchAll(/\{([^}]+)\}/g)].some(([, name]) => name !== 'app_id'),
);

describe('another app’s resources', () => {
  test(`another app’s resources are unknown to each of ${named.length} operations that name one`, async () => {
    const unknown = Object.fromEntries(
      Object.entries(foreign).map(([name, id]) => [
        name,
        name === 'app_id' ? sandbox.appId : unknownLike(id),
      ]),
    );
    const theirs = { ...foreign, app_id: sandbox.appId };
    let hidden = 0;
    for (const operation of named) {
      const input = exampleInput(operation);
      const ask = (ids: Ids) =>
        attempt(sandbox, operation.operationId, { ...input, path: { ...input.path, ...ids } });
      const toForeign = withoutIds(await ask(theirs), theirs);
      const toUnknown = withoutIds(await ask(unknown), unknown);
      expect({ id: operation.operationId, ...toForeign }).toEqual({
        id: operation.operationId,
        ...toUnknown,
      });
      expect(toForeign.status, operation.operationId).toBeGreaterThanOrEqual(400);
      if (toForeign.status === 404) hidden += 1;
    }
    expect(hidden).toBeGreaterThan(50);
  });

  test('what another app could not find is there for the app that has it', async () => {
    for (const [id, path] of [
      ['getWallet', 'wallet_id'],
      ['getUser', 'user_id'],
      ['getPolicy', 'policy_id'],
      ['getKeyQuorum', 'key_quorum_id'],
      ['getConditionSet', 'condition_set_id'],
      ['getAggregation', 'aggregation_id'],
      ['getOrganization', 'organization_id'],
      ['getWebhookEndpoint', 'endpoint_id'],
      ['getAccount', 'account_id'],
      ['getIntent', 'intent_id'],
      ['getTransaction', 'transaction_id'],
    ] as const) {
      const answer = await attempt(other, id, { path: { [path]: foreign[path] } });
      expect(answer.status, id).toBe(200);
    }
  });
});

test('the app’s own resources are found with its own credentials', async () => {
  for (const operation of named.filter(({ operationId }) => operationId.startsWith('get'))) {
    const input = exampleInput(operation);
    const path = { ...input.path, ...own };
    const parameters = [...operations[operation.operationId].path.matchAll(/\{([^}]+)\}/g)].map(
      ([, name]) => name!,
    );
    // Accounts of wallets and bank accounts are named by the same parameter.
    const isBankAccount = operation.operationId.includes('FiatAccount');
    if (isBankAccount || !parameters.every((name) => name in own)) continue;
    const { status } = await attempt(sandbox, operation.operationId, { path });
    expect([200, 400, 501], `${operation.operationId} ${status}`).toContain(status);
  }
});

/** An id of the same shape that nothing has: the last characters reversed and turned. */
function unknownLike(id: string): string {
  return id.slice(0, -6) + [...id.slice(-6)].map((letter) => (letter === '7' ? '3' : '7')).join('');
}
