import { generateKeyPairSync } from 'node:crypto';
import { SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import type { OperationId } from '../../../src/generated/operations.ts';
import { call, refusal } from '../../support/call.ts';
import { configureApp } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { documentedOperations } from '../every-operation/documented-operations.ts';
import { expectOwnersAreAsked, makePair } from '../policies/owner-signatures.ts';
import { messagePolicy, messageRule } from '../policies/rules.ts';

// Owned resources are changed and used only with the owner's signatures, and each refusal says what is wrong
// with the signatures sent.
const login = generateKeyPairSync('rsa', { modulusLength: 2048 });

let sandbox: TestSandbox;
beforeAll(async () => {
  const jwtPublicKeyPem = login.publicKey.export({ format: 'pem', type: 'spki' }).toString();
  sandbox = await startSandbox({ jwtPublicKeyPem });
  await configureApp(sandbox, { archive_requires_owner: true });
});
afterAll(() => sandbox[Symbol.asyncDispose]());

/** One resource of each kind, all of one owner, by the name of the path parameter that takes its id. */
type Owned = Readonly<Record<string, string>>;

const recipient = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({
  format: 'der',
  type: 'spki',
});
const toBob = { address: '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0' };
const swap = {
  source: { asset_address: 'native', caip2: 'eip155:8453' },
  destination: { asset_address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913' },
  base_amount: '1000000000000000',
};
const transfer = { source: { asset: 'usdc', chain: 'base', amount: '1' }, destination: toBob };

/** The operations that ask an owner, and a body for those that take one. */
const bodies: Partial<Record<OperationId, unknown>> = {
  archiveWallet: undefined,
  attachWalletAutomations: { automation_ids: ['jm8mlqpa4mo9wzq7lzgzbpbt'] },
  deleteWalletAutomation: undefined,
  detachWalletAutomations: { automation_ids: ['jm8mlqpa4mo9wzq7lzgzbpbt'] },
  updateWalletAutomation: { enabled: false },
  addConditionSetItems: [{ value: 'other' }],
  createCryptoDepositAccount: {
    ...{ type: 'deposit_config', deposit_config_id: 'j3h2jsj9vzcghv28s3w1prka' },
  },
  createFiatPayout: {
    source: { asset: 'usdc', chain: 'base', amount: '1' },
    destination: { fiat_account_id: 'none' },
  },
  createPolicyRule: messageRule('other'),
  claimEthereumEarnIncentive: { chain: 'base' },
  collectEthereumEarnFees: { vault_id: 'qrvc27mg0z2zii6xo0k3z34h' },
  deleteAggregation: undefined,
  deleteConditionSet: undefined,
  deleteConditionSetItem: undefined,
  deleteKeyQuorum: undefined,
  deletePolicy: undefined,
  deletePolicyRule: undefined,
  depositEthereumEarn: { vault_id: 'qrvc27mg0z2zii6xo0k3z34h', amount: '1' },
  executeWalletSwap: swap,
  exportWallet: { encryption_type: 'HPKE', recipient_public_key: recipient.toString('base64') },
  quoteWalletTransfer: { ...transfer, destination: { ...toBob, asset: 'usdc', chain: 'arbitrum' } },
  quoteWalletSwap: swap,
  rawSignWallet: { params: { hash: `0x${'71'.repeat(32)}` } },
  replaceConditionSetItems: [{ value: 'other' }],
  transferFromWallet: transfer,
  updateConditionSet: { name: 'Taken' },
  updateKeyQuorum: { public_keys: [aliceKey.publicKey], authorization_threshold: 1 },
  updatePolicy: { name: 'Taken' },
  updatePolicyRule: messageRule('other'),
  updateWallet: { policy_ids: [] },
  walletRpc: { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } },
  withdrawEthereumEarn: { vault_id: 'qrvc27mg0z2zii6xo0k3z34h', amount: '1' },
};
const changes = Object.entries(bodies) as [OperationId, unknown][];

async function makeOwned(ownerId: string): Promise<Owned> {
  const { body: wallet } = await call(sandbox, 'createWallet', {
    body: { chain_type: 'ethereum', owner_id: ownerId },
  });
  const { body: policy } = await call(sandbox, 'createPolicy', {
    body: { ...messagePolicy(['one']), owner_id: ownerId },
  });
  const { body: set } = await call(sandbox, 'createConditionSet', { body: { name: 'Ours' } });
  const path = { condition_set_id: set.id };
  const { body: items } = await call(sandbox, 'addConditionSetItems', { path, body: [{ value: 'friend' }] });
  await call(sandbox, 'updateConditionSet', { path, body: { owner_id: ownerId } });
  const { body: aggregation } = await call(sandbox, 'createAggregation', {
    body: {
      name: 'Ours',
      method: 'eth_signTransaction',
      metric: { field_source: 'ethereum_transaction', field: 'value', function: 'sum' },
      window: { type: 'rolling', seconds: 3600 },
      owner_id: ownerId,
    },
  });
  const { body: automation } = await call(sandbox, 'createWalletAutomation', {
    body: {
      owner_id: ownerId,
      config: {
        trigger: { type: 'deposit', assets: { mode: 'all' } },
        action: { type: 'swap', destination_chain_asset: { asset: 'usdc', chain: 'base' } },
      },
    },
  });
  return {
    automation_id: automation.id,
    wallet_id: wallet.id,
    policy_id: policy.id,
    rule_id: policy.rules[0]!.id,
    condition_set_id: set.id,
    condition_set_item_id: items[0]!.id,
    aggregation_id: aggregation.id,
    key_quorum_id: ownerId,
  };
}

const inputOf = (path: Owned, body: unknown) => (body === undefined ? { path } : { path, body });

test('every operation that documents a user without a key is tested here', () => {
  const asking = documentedOperations.filter(
    ({ responses }) =>
      responses['501'] === undefined &&
      JSON.stringify(responses['401'] ?? '').includes('no_valid_user_session_keys'),
  );
  // The signature of an intent is in its body, by a member who may sign the proposed request. The accounts that a user
  // logs in by belong to no key quorum: a key of that user signs for them, see identity-changes.test.ts.
  const apart: readonly OperationId[] = ['authorizeIntent', 'linkUserAccount', 'unlinkUserAccount'];
  const expected = asking.map(({ operationId }) => operationId).filter((id) => !apart.includes(id));
  expect(changes.map(([id]) => id).sort()).toEqual(expected.sort());
});

describe('resources owned by two keys together', () => {
  let owned: Owned;
  beforeAll(async () => {
    owned = await makeOwned(await makePair(sandbox));
  });

  test.each(changes)(
    'resources owned by two keys together: %s requires both signatures',
    async (operation, body) => {
      await expectOwnersAreAsked(sandbox, { operation, input: inputOf(owned, body) });
    },
  );
});

describe('resources owned by a user', () => {
  let owned: Owned;
  let userKey: string;
  beforeAll(async () => {
    const account = { type: 'custom_auth', custom_user_id: 'owner' } as const;
    const { body: user } = await call(sandbox, 'createUser', { body: { linked_accounts: [account] } });
    const { body: quorum } = await call(sandbox, 'createKeyQuorum', { body: { user_ids: [user.id] } });
    owned = await makeOwned(quorum.id);
  });

  test.each(changes)('%s is refused if the user has no key', async (operation, body) => {
    const signed = { signWith: [bobKey.privateKey] };
    expect(await refusal(sandbox, operation, inputOf(owned, body), signed)).toMatchObject({
      status: 401,
      body: { code: 'no_valid_user_session_keys' },
    });
  });

  describe("with a key of the user's that has expired", () => {
    beforeAll(async () => {
      const token = await new SignJWT({ sub: 'owner' })
        .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
        .setExpirationTime(sandbox.clock.now() / 1000 + 3600)
        .sign(login.privateKey);
      const { body } = await call(sandbox, 'authenticateWallets', { body: { user_jwt: token } });
      if (!('authorization_key' in body)) throw new Error('the key came sealed');
      userKey = body.authorization_key;
      sandbox.clock.set(body.expires_at);
    });

    test.each(changes)('resources owned by a user: %s is refused', async (operation, body) => {
      const signed = { signWith: [userKey] };
      expect(await refusal(sandbox, operation, inputOf(owned, body), signed)).toMatchObject({
        status: 401,
        body: { code: 'user_session_keys_expired' },
      });
    });
  });
});
