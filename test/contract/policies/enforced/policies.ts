import type {
  CreatePolicyRequest,
  CreateWalletRequest,
  WalletChainType,
} from '../../../../src/generated/schemas.ts';
import { type CallOptions, call } from '../../../support/call.ts';
import type { TestSandbox } from '../../../support/sandbox.ts';

export type Rule = CreatePolicyRequest['rules'][number];

/** True for every request, because rules must have conditions. */
export const always = {
  field_source: 'system',
  field: 'current_unix_timestamp',
  operator: 'gt',
  value: '0',
} as const;

export function allow(method: Rule['method'], ...conditions: Rule['conditions']): Rule {
  return {
    name: `allow ${method}`,
    method,
    action: 'ALLOW',
    conditions: conditions.length === 0 ? [always] : conditions,
  };
}

export function deny(method: Rule['method'], ...conditions: Rule['conditions']): Rule {
  return { ...allow(method, ...conditions), name: `deny ${method}`, action: 'DENY' };
}

/** Makes a policy; returns its id. */
export async function makePolicy(
  sandbox: TestSandbox,
  chain_type: WalletChainType,
  rules: readonly Rule[],
): Promise<string> {
  const body = { version: '1.0', name: 'Under test', chain_type, rules: [...rules] } as CreatePolicyRequest;
  return (await call(sandbox, 'createPolicy', { body })).body.id;
}

/** Creates a wallet, with a policy if rules are given. */
export async function makeWallet(
  sandbox: TestSandbox,
  chain_type: WalletChainType,
  { rules, ...rest }: { rules?: readonly Rule[] } & Omit<CreateWalletRequest, 'chain_type'> = {},
) {
  const policy_ids = rules === undefined ? [] : [await makePolicy(sandbox, chain_type, rules)];
  return (await call(sandbox, 'createWallet', { body: { chain_type, policy_ids, ...rest } })).body;
}

type Used = 'walletRpc' | 'rawSignWallet' | 'exportWallet';

/** `allowed`, or the code of the refusal. */
export async function outcome(
  sandbox: TestSandbox,
  operation: Used,
  { wallet, body, ...options }: { wallet: { id: string }; body: object } & CallOptions,
): Promise<string> {
  const input = { path: { wallet_id: wallet.id }, body };
  const refused = { status: 0, code: '' };
  const answer = await call(sandbox, operation, input as never, options).catch((error: Error) => {
    const [, status, reported] = /answered (\d+) (\{.*\})$/s.exec(error.message) ?? [];
    // Anything but a refusal, such as an undocumented response, fails the test.
    if (status === undefined || reported === undefined) throw error;
    return Object.assign(refused, { status: Number(status), code: String(JSON.parse(reported).code) });
  });
  return answer === refused ? `${refused.status} ${refused.code}` : 'allowed';
}

export const allowed = 'allowed';
export const denied = '400 policy_violation';
export const hello = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } } as const;

/** A request that signs an Ethereum transaction. */
export function payment(transaction: object) {
  return { method: 'eth_signTransaction', params: { transaction: { chain_id: 1, ...transaction } } } as const;
}
