import type { Scenario } from './scenarios.ts';

const transaction = {
  ...{
    to: '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0',
    chain_id: 8453,
    nonce: 0,
    type: 2,
    gas_limit: 21000,
  },
  ...{ max_fee_per_gas: '0x77359400', max_priority_fee_per_gas: '0x3b9aca00' },
};

export const policyDenied: Scenario = {
  name: 'policy-denied',
  summary: 'A policy that allows at most 0.001 ETH denies a transaction of 1 ETH.',
  async play(stage) {
    const policy = await stage.create('policy', 'A policy allows transactions of at most 0.001 ETH', {
      operation: 'createPolicy',
      body: {
        version: '1.0',
        name: 'Small payments',
        chain_type: 'ethereum',
        rules: [
          {
            name: 'At most 0.001 ETH',
            method: 'eth_signTransaction',
            conditions: [
              {
                field_source: 'ethereum_transaction',
                field: 'value',
                operator: 'lte',
                value: '1000000000000000',
              },
            ],
            action: 'ALLOW',
          },
        ],
      },
    });
    const wallet = await stage.create('wallet', 'A wallet gets the policy', {
      operation: 'createWallet',
      body: { chain_type: 'ethereum', policy_ids: [policy] },
    });
    const sign = (value: string) => ({
      operation: 'walletRpc',
      path: { wallet_id: wallet },
      body: { method: 'eth_signTransaction', params: { transaction: { ...transaction, value } } },
    });
    await stage.call('It signs a transaction of 0.001 ETH', sign('0x38d7ea4c68000'));
    const { requestId } = await stage.call('It is asked to sign one of 1 ETH', sign('0xde0b6b3a7640000'));
    return [`custos why ${requestId}`, `custos call getPolicy ${policy}`];
  },
};
