import type { Operations } from '../src/generated/operations.ts';
import type { LoadRequest } from './measure/load-order.ts';
import type { Address } from './servers/launch.ts';

/** Four accounts and some metadata: 0.5 KB in, 0.9 KB out. */
export const createUserBody: Operations['createUser']['body'] = {
  linked_accounts: [
    { type: 'email', address: 'alice@example.com' },
    { type: 'custom_auth', custom_user_id: 'acme-user-7' },
    {
      type: 'github_oauth',
      subject: '1234567',
      email: 'alice@example.com',
      name: 'Alice',
      username: 'alice',
    },
    { type: 'telegram', telegram_user_id: '987654321', first_name: 'Alice', username: 'alice_example' },
  ],
  custom_metadata: { tier: 'gold', age_verified: true, seats: 3, region: 'eu-central', cohort: '2025-11' },
};

/** Six rules with eight conditions of four kinds: 2 KB in and out. */
export const createPolicyBody: Operations['createPolicy']['body'] = {
  version: '1.0',
  name: 'Treasury payments',
  chain_type: 'ethereum',
  rules: [
    payment('Pay Alice', '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0'),
    payment('Pay Bob', '0x9858EfFD232B4033E47d90003D41EC34EcaEda94'),
    payment('Pay Carol', '0xF3f50213C1d2e255e4B2bAD430F8A38EEF8D718E'),
    {
      name: 'At most 100 USDC a time',
      method: 'eth_sendTransaction',
      conditions: [
        {
          field_source: 'ethereum_transaction',
          field: 'to',
          operator: 'eq',
          value: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
        },
        {
          field_source: 'ethereum_calldata',
          field: 'transfer.value',
          operator: 'lte',
          value: '100000000',
          abi: [
            {
              type: 'function',
              name: 'transfer',
              stateMutability: 'nonpayable',
              inputs: [
                { name: 'to', type: 'address' },
                { name: 'value', type: 'uint256' },
              ],
              outputs: [{ name: '', type: 'bool' }],
            },
          ],
        },
      ],
      action: 'ALLOW',
    },
    {
      name: 'Nothing after 2025',
      method: '*',
      conditions: [
        { field_source: 'system', field: 'current_unix_timestamp', operator: 'gte', value: '1767225600' },
      ],
      action: 'DENY',
    },
  ],
};

function payment(name: string, to: string) {
  const source = { field_source: 'ethereum_transaction', operator: 'lte' } as const;
  return {
    name,
    method: 'eth_signTransaction' as const,
    conditions: [
      { ...source, field: 'to' as const, operator: 'eq' as const, value: to },
      { ...source, field: 'value' as const, value: '1000000000000000000' },
    ],
    action: 'ALLOW' as const,
  };
}

/** The headers of a request with the credentials of the comparison. */
function headersFor(address: Address, hasBody: boolean): Record<string, string> {
  const { appId, appSecret, isBehindProxy = false } = address;
  return {
    authorization: `Basic ${Buffer.from(`${appId}:${appSecret}`).toString('base64')}`,
    'service-app-id': appId,
    ...(hasBody ? { 'content-type': 'application/json' } : {}),
    ...(isBehindProxy ? { 'x-forwarded-proto': 'https' } : {}),
  };
}

export function getRequest(address: Address, path: string): LoadRequest {
  return { method: 'GET', path, headers: headersFor(address, false), status: 200 };
}

export function postRequest(address: Address, path: string, body: unknown): LoadRequest {
  return {
    method: 'POST',
    path,
    headers: headersFor(address, true),
    body: JSON.stringify(body),
    status: 200,
  };
}

/** `personal_sign` of a text on a wallet. */
export function personalSignRequest(address: Address, walletId: string, message: string): LoadRequest {
  return postRequest(address, `/v1/wallets/${walletId}/rpc`, {
    method: 'personal_sign',
    chain_type: 'ethereum',
    params: { message, encoding: 'utf-8' },
  });
}
