import { createPolicy, createPolicyRuleIntent, createUser, walletRpc } from './generated/orval.js';

const init = { headers: { 'service-app-id': 'custossandboxapp000000000' } };

export async function createCustomer(address: string): Promise<string | undefined> {
  const { status, data } = await createUser(
    { linked_accounts: [{ type: 'email', address }], wallets: [{ chain_type: 'ethereum' }] },
    init,
  );
  return status === 200 ? data.id : undefined;
}

export async function signMessage(walletId: string, message: string): Promise<string | undefined> {
  const { status, data } = await walletRpc(
    walletId,
    { method: 'personal_sign', params: { message, encoding: 'utf-8' } },
    init,
  );
  if (status !== 200) return data.code;
  return data.method === 'personal_sign' ? data.data.signature : undefined;
}

export async function proposePayee(value: string): Promise<string | undefined> {
  const policy = await createPolicy(
    { version: '1.0', name: 'Suppliers', chain_type: 'ethereum', rules: [] },
    init,
  );
  const { status, data } = await createPolicyRuleIntent(
    policy.status === 200 ? policy.data.id : '',
    {
      name: 'Pay the supplier',
      method: 'eth_signTransaction',
      conditions: [{ field_source: 'ethereum_transaction', field: 'to', operator: 'eq', value }],
      action: 'ALLOW',
    },
    init,
  );
  if (status !== 200) return undefined;
  return data.request_details.method === 'POST' ? data.request_details.body.name : undefined;
}
