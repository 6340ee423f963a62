import { createPolicy, createPolicyRuleIntent, createUser, walletRpc } from './generated/hey-api/index.js';

const headers = { 'service-app-id': 'custossandboxapp000000000' };

export async function createCustomer(address: string): Promise<string | undefined> {
  const { data } = await createUser({
    headers,
    body: { linked_accounts: [{ type: 'email', address }], wallets: [{ chain_type: 'ethereum' }] },
  });
  return data?.id;
}

export async function signMessage(walletId: string, message: string): Promise<string | undefined> {
  const { data, error } = await walletRpc({
    headers,
    path: { wallet_id: walletId },
    body: { method: 'personal_sign', params: { message, encoding: 'utf-8' } },
  });
  return data?.method === 'personal_sign' ? data.data.signature : error?.code;
}

export async function proposePayee(value: string): Promise<string | undefined> {
  const policy = await createPolicy({
    headers,
    body: { version: '1.0', name: 'Suppliers', chain_type: 'ethereum', rules: [] },
  });
  const { data } = await createPolicyRuleIntent({
    headers,
    path: { policy_id: policy.data?.id ?? '' },
    body: {
      name: 'Pay the supplier',
      method: 'eth_signTransaction',
      conditions: [{ field_source: 'ethereum_transaction', field: 'to', operator: 'eq', value }],
      action: 'ALLOW',
    },
  });
  return data?.request_details.method === 'POST' ? data.request_details.body.name : undefined;
}
