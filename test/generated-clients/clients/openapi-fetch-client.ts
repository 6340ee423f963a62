import createClient from 'openapi-fetch';
import type { paths } from './generated/openapi-typescript.js';

const client = createClient<paths>({ baseUrl: 'https://127.0.0.1:4010' });
const header = { 'service-app-id': 'custossandboxapp000000000' };

export async function createCustomer(address: string): Promise<string | undefined> {
  const { data } = await client.POST('/v1/users', {
    params: { header },
    body: { linked_accounts: [{ type: 'email', address }], wallets: [{ chain_type: 'ethereum' }] },
  });
  return data?.id;
}

export async function signMessage(walletId: string, message: string): Promise<string | undefined> {
  const { data, error } = await client.POST('/v1/wallets/{wallet_id}/rpc', {
    params: { path: { wallet_id: walletId }, header },
    body: { method: 'personal_sign', params: { message, encoding: 'utf-8' } },
  });
  return data?.method === 'personal_sign' ? data.data.signature : error?.code;
}

export async function proposePayee(value: string): Promise<string | undefined> {
  const policy = await client.POST('/v1/policies', {
    params: { header },
    body: { version: '1.0', name: 'Suppliers', chain_type: 'ethereum', rules: [] },
  });
  const { data } = await client.POST('/v1/intents/policies/{policy_id}/rules', {
    params: { path: { policy_id: policy.data?.id ?? '' }, header },
    body: {
      name: 'Pay the supplier',
      method: 'eth_signTransaction',
      conditions: [{ field_source: 'ethereum_transaction', field: 'to', operator: 'eq', value }],
      action: 'ALLOW',
    },
  });
  return data?.request_details.method === 'POST' ? data.request_details.body.name : undefined;
}
