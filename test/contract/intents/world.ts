import { acmeApp } from '../../../mocks/apps.ts';
import { aliceKey, bobKey, carolKey } from '../../../mocks/authorization-keys.ts';
import type {
  CreateKeyQuorumRequest,
  CreateWalletRequest,
  WalletRpcRequest,
} from '../../../src/generated/schemas.ts';
import { call } from '../../support/call.ts';
import { configureApp } from '../../support/other-app.ts';
import type { TestSandbox } from '../../support/sandbox.ts';
import { messagePolicy } from '../policies/rules.ts';

export const [alice, bob, carol] = [aliceKey.privateKey, bobKey.privateKey, carolKey.privateKey];

export const message = (text: string) =>
  ({ method: 'personal_sign', params: { encoding: 'utf-8', message: text } }) satisfies WalletRpcRequest;

/** A payment in USDC. */
export const payment = (amount: string, chain = 'base') => ({
  source: { asset: 'usdc', chain, amount },
  destination: { address: '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0' },
});

/** Resources for proposals, owned by two of Alice, Bob and Carol by default. */
export function worldOf(sandbox: TestSandbox) {
  const quorum = async (body: CreateKeyQuorumRequest = treasury) =>
    (await call(sandbox, 'createKeyQuorum', { body })).body;
  return {
    quorum,
    async policy(words: readonly string[] = ['rent'], owner?: { owner_id: string } | Record<string, never>) {
      const fields = owner ?? { owner_id: (await quorum()).id };
      return (await call(sandbox, 'createPolicy', { body: { ...messagePolicy(words), ...fields } })).body;
    },
    async wallet(fields: Partial<CreateWalletRequest> = {}) {
      const owner = 'owner_id' in fields || 'owner' in fields ? {} : { owner_id: (await quorum()).id };
      const body = { chain_type: 'ethereum', ...owner, ...fields } as const;
      return (await call(sandbox, 'createWallet', { body })).body;
    },
    async conditionSet(owner?: { owner_id: string }) {
      const fields = owner ?? { owner_id: (await quorum()).id };
      return (await call(sandbox, 'createConditionSet', { body: { name: 'Payees', ...fields } })).body;
    },
    async proposeMessage(walletId: string, text = 'hello', options: { expiryMs?: number } = {}) {
      const input = { path: { wallet_id: walletId }, body: message(text) };
      return (await call(sandbox, 'createWalletRpcIntent', input, options)).body;
    },
  };
}

export const treasury: CreateKeyQuorumRequest = {
  display_name: 'Treasury',
  public_keys: [aliceKey.publicKey, bobKey.publicKey, carolKey.publicKey],
  authorization_threshold: 2,
};

/** A user who is logged in. */
export interface LoggedIn {
  readonly id: string;
  readonly token: string;
  /** In place of the app secret. */
  readonly headers: { readonly authorization: string };
}

/** Logs users in by codes of test accounts, which are made for it. */
export async function logIn(sandbox: TestSandbox, count: number): Promise<LoggedIn[]> {
  const nowMs = sandbox.clock.now();
  const accounts = Array.from({ length: count }, (_, index) => ({
    ...acmeApp.testAccount,
    id: `account${index}`,
    email: `member${index}@example.com`,
    phone_number: `+1 555 555 ${5000 + index}`,
    created_at_ms: nowMs,
    updated_at_ms: nowMs,
  }));
  await configureApp(sandbox, { test_accounts: accounts });
  const users: LoggedIn[] = [];
  for (const { email, otp_code: code } of accounts) {
    const { body } = await call(sandbox, 'authenticatePasswordless', { body: { email, code } });
    const token = body.token ?? '';
    users.push({ id: body.user.id, token, headers: { authorization: `Bearer ${token}` } });
  }
  return users;
}

/** A user's key for these intents alone. */
export async function boundKey(sandbox: TestSandbox, user: LoggedIn, intentIds: string[]): Promise<string> {
  const bindings = intentIds.map((intentId) => ({ type: 'intent', intentId }) as const);
  const { body } = await call(sandbox, 'authenticateWalletIntents', {
    body: { user_jwt: user.token, bindings },
  });
  return 'authorization_key' in body ? body.authorization_key : '';
}
