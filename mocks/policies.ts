import type { CreatePolicyRequest } from '../src/generated/schemas.ts';

/** Allows signing any message, and transactions of at most 0.1 ether. */
export const spendingPolicy = {
  version: '1.0',
  name: 'At most 0.1 ether at once',
  chain_type: 'ethereum',
  rules: [
    {
      name: 'Transactions up to 0.1 ether',
      method: 'eth_signTransaction',
      action: 'ALLOW',
      conditions: [
        {
          field_source: 'ethereum_transaction',
          field: 'value',
          operator: 'lte',
          value: '100000000000000000',
        },
      ],
    },
    {
      name: 'Messages',
      method: 'personal_sign',
      action: 'ALLOW',
      conditions: [{ field_source: 'system', field: 'current_unix_timestamp', operator: 'gt', value: '0' }],
    },
  ],
} satisfies CreatePolicyRequest;
