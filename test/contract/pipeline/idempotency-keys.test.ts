import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import { type OperationId, operations } from '../../../src/generated/operations.ts';
import { secretProperties } from '../../../src/generated/secrets.ts';
import { attempt } from '../../support/call.ts';
import { type DatabaseKind, databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { documentedOperations, exampleInput } from '../every-operation/documented-operations.ts';

// A key is either kept, so that the repetition has the first response and no second effect, or refused: never ignored.

/** The POST operations that change something and refuse keys, with the reason. */
const refusing: Readonly<Partial<Record<OperationId, string>>> = {
  authenticatePasswordless: 'tokens',
  authenticateUserSigner: 'a key',
  authenticateWalletIntents: 'a key',
  authenticateWallets: 'a key',
  authorizeOauthDevice: 'OAuth',
  createCardEphemeralKey: 'a secret',
  createOrganizationExternalFiatAccount: 'account numbers',
  createOrganizationSecret: 'a secret',
  createUserExternalFiatAccount: 'account numbers',
  createWebhookEndpoint: 'a secret',
  exchangeOauthToken: 'OAuth',
  exportWallet: 'a key',
  initiateOrganizationKybLinks: 'personal links',
  initiateOrganizationKybTos: 'personal links',
  initiateUserKycLinks: 'personal links',
  initiateUserKycTos: 'personal links',
  rotateWebhookSecret: 'a secret',
  submitOrganizationKyb: 'proofs of identity',
  submitUserKyc: 'proofs of identity',
  verifyOauthDevice: 'OAuth',
};

/** Operations other than POST that create something: an intent, or a change at a card issuer. */
const alsoKept = /^updateCard$|^(replace|update|delete).*Intent$/;

const expectedOf = (id: OperationId): 'kept' | 'refused' => {
  const { method, isReadOnly } = operations[id];
  if (method !== 'POST') return alsoKept.test(id) ? 'kept' : 'refused';
  return isReadOnly === true || id in refusing ? 'refused' : 'kept';
};

const changing = documentedOperations.filter(({ operationId }) => operations[operationId].method !== 'GET');

describe('the example of every operation, sent twice under one key', () => {
  let sandbox: TestSandbox;
  beforeAll(async () => {
    sandbox = await startSandbox();
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());

  test.each(changing.map((operation) => [operation.operationId, operation] as const))(
    'the example of every operation, sent twice under one key: %s',
    async (id, operation) => {
      // Cards belong to users, whose tokens the app secret does not replace.
      const input = exampleInput(operation);
      const options = { idempotencyKey: `once ${id}` };
      const first = await attempt(sandbox, id, input, options);
      const again = await attempt(sandbox, id, input, options);
      if (first.status === 401) {
        expect([id, operations[id].idempotent ? 'kept' : 'refused']).toEqual([id, expectedOf(id)]);
        return;
      }
      if (expectedOf(id) === 'kept') {
        expect(again).toMatchObject({ status: first.status, headers: { 'idempotent-replayed': 'true' } });
        expect(again.body).toEqual(first.body);
        return;
      }
      expect(first).toMatchObject({ status: 400, body: { code: 'invalid_data' } });
      expect(JSON.stringify(first.body)).toContain('service-idempotency-key: expected no idempotency key');
      expect(again.body).toEqual(first.body);
    },
  );

  test('GET ignores the key', async () => {
    const answers = [1, 2].map(() => attempt(sandbox, 'listWallets', {}, { idempotencyKey: 'reading' }));
    for (const answer of await Promise.all(answers)) {
      expect(answer.status).toBe(200);
      expect(answer.headers['idempotent-replayed']).toBeUndefined();
    }
  });
});

test('no stored response has a secret in the clear', () => {
  // These are encrypted for the caller, or by the user for the card issuer.
  const encrypted = ['ciphertext', 'secret_cipher', 'encrypted_number'];
  // Without the rest of the request, a signature is worth nothing.
  const known = [...encrypted, 'signature'];
  const open = Object.entries(secretProperties)
    .filter(([id]) => operations[id as OperationId].idempotent)
    .flatMap(([id, { request, response }]) =>
      [...request, ...response].filter((name) => !known.includes(name)).map((name) => `${id} ${name}`),
    );
  expect(open).toEqual([]);
});

const rule = {
  name: 'small',
  method: 'eth_signTransaction',
  action: 'ALLOW',
  conditions: [{ field_source: 'ethereum_transaction', field: 'value', operator: 'lte', value: '1' }],
};
const email = (name: string) => ({ type: 'email', address: `${name}@example.com` });
const usdc = {
  trigger: { type: 'deposit', assets: { mode: 'all' } },
  action: { type: 'swap', destination_chain_asset: { asset: 'usdc', chain: 'base' } },
};

/** What each operation needs, by its parameters. */
async function resources(its: TestOperations) {
  const run = async (id: OperationId, body: object, path = {}) => {
    const answer = await its.run(id, { body, path });
    expect(answer, id).toMatchObject({ status: 200 });
    return (answer.body as { id: string }).id;
  };
  const quorum = await run('createKeyQuorum', { public_keys: [aliceKey.publicKey] });
  return {
    quorum,
    wallet: await run('createWallet', { chain_type: 'ethereum', owner_id: quorum }),
    free: await run('createWallet', { chain_type: 'ethereum' }),
    user: await run('createUser', { linked_accounts: [email('first')] }),
    policy: await run('createPolicy', { version: '1.0', name: 'p', chain_type: 'ethereum', rules: [rule] }),
    owned: await run('createPolicy', {
      ...{ version: '1.0', name: 'o', chain_type: 'ethereum', rules: [rule] },
      owner_id: quorum,
    }),
    set: await run('createConditionSet', { name: 'set' }),
  };
}

type Ids = Awaited<ReturnType<typeof resources>>;
type Creation = [id: OperationId, input: (ids: Ids, its: TestOperations) => { path?: object; body?: object }];

const creations: readonly Creation[] = [
  ['createKeyQuorum', () => ({ body: { public_keys: [bobKey.publicKey] } })],
  [
    'createWalletsBatch',
    () => ({ body: { wallets: [{ chain_type: 'ethereum' }, { chain_type: 'solana' }] } }),
  ],
  ['createPolicyRule', ({ policy }) => ({ path: { policy_id: policy }, body: rule })],
  ['createConditionSet', () => ({ body: { name: 'set' } })],
  [
    'addConditionSetItems',
    ({ set }) => ({ path: { condition_set_id: set }, body: [{ value: 'one' }, { value: 'two' }] }),
  ],
  ['createUser', () => ({ body: { linked_accounts: [email('second')] } })],
  ['batchCreateUsers', () => ({ body: { users: [{ linked_accounts: [email('third')] }] } })],
  [
    'linkUserAccount',
    ({ user }) => ({ path: { user_id: user }, body: { type: 'custom_auth', custom_user_id: 'fourth' } }),
  ],
  [
    'pregenerateUserWallets',
    ({ user }) => ({ path: { user_id: user }, body: { wallets: [{ chain_type: 'ethereum' }] } }),
  ],
  ['createOrganization', ({ quorum }) => ({ body: { display_name: 'Acme', default_key_quorum_id: quorum } })],
  ['createWalletAutomation', () => ({ body: { owner_id: null, config: usdc } })],
  [
    'createAllowlistEntry',
    (_, { app }) => ({ path: { app_id: app.id }, body: { type: 'email', value: 'a@example.com' } }),
  ],
  ['createPolicyRuleIntent', ({ owned }) => ({ path: { policy_id: owned }, body: rule })],
  ['updatePolicyIntent', ({ owned }) => ({ path: { policy_id: owned }, body: { name: 'other' } })],
  [
    'createWalletRpcIntent',
    ({ wallet }) => ({
      path: { wallet_id: wallet },
      body: { method: 'personal_sign', params: { encoding: 'utf-8', message: 'hello' } },
    }),
  ],
  [
    'initWalletImport',
    () => ({
      body: {
        ...{ chain_type: 'ethereum', entropy_type: 'private-key', encryption_type: 'HPKE' },
        address: '0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F',
      },
    }),
  ],
  ['archiveWallet', ({ free }) => ({ path: { wallet_id: free } })],
];

describe.each(databaseKinds)('on %s, a creation under one key', (kind) => {
  let its: TestOperations;
  let ids: Ids;
  beforeAll(async () => {
    its = await openOperations(kind);
    ids = await resources(its);
  });
  afterAll(() => its[Symbol.asyncDispose]());

  test.each(creations)('%s has one effect', async (id, inputOf) => {
    const input = { ...inputOf(ids, its), idempotencyKey: `once ${id}` } as Parameters<typeof its.run>[1];
    const first = await its.run(id, input);
    expect(first).toMatchObject({ status: 200 });
    const between = await rowsOf(its, kind);
    its.clock.nowMs += 1000;
    expect(await its.run(id, input)).toEqual(first);
    expect(await rowsOf(its, kind)).toEqual(between);
    // Under another key the request is executed, and its response is stored too.
    await its.run(id, { ...input, idempotencyKey: `twice ${id}` });
    expect((await rowsOf(its, kind)).idempotency_records).toBe(between.idempotency_records! + 1);
  });
});

/** How many rows each table has. */
async function rowsOf({ database }: TestOperations, kind: DatabaseKind): Promise<Record<string, number>> {
  const em = database.orm.em.fork();
  const names = await em.execute<{ name: string }[]>(
    kind === 'sqlite'
      ? "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'"
      : "select tablename as name from pg_tables where schemaname = 'public'",
  );
  const union = names.map(({ name }) => `select '${name}' as name, count(*) as count from "${name}"`);
  const counts = await em.execute<{ name: string; count: number | string }[]>(union.join(' union all '));
  return Object.fromEntries(counts.map(({ name, count }) => [name, Number(count)]));
}
