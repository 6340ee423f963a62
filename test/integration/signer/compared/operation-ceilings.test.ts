import { expect, test } from 'vitest';
import { planOperation } from '../../../../src/domain/money/sending/plan-user-operation.ts';
import { operationFeeExcess } from '../../../../src/engine/actions/filled-fees.ts';
import { ceilingsOf, type EvmCeilings } from '../../../../src/engine/assets/fee-ceilings.ts';
import type { Bundler } from '../../../../src/ports/chains.ts';
import { caip2, scriptChain } from '../../../support/scripted-chain.ts';

// The server refuses what its signer would refuse: all gas of a sponsored operation counts, not that of its calls
// alone.

const address = '0x9858EfFD232B4033E47d90003D41EC34EcaEda94';
const [units, callGas] = [100_000n, 120_000n];
/** Of the account, the bundler and the paymaster. */
const gas = callGas + 100_000n + 60_000n + 50_000n;
const price = 2_000_000_000n;

function plan(ceilings: Partial<EvmCeilings>) {
  const chain = Object.assign(scriptChain(), {
    ceilings: ceilingsOf(caip2, ceilings),
    bundler: { paymaster: `0x${'33'.repeat(20)}` } as Bundler,
  });
  chain.simulation = { succeeds: true, units };
  const transaction = { to: `0x${'11'.repeat(20)}`, value: '0x1' };
  return planOperation({ chains: chain }, { caip2, address, transaction } as never);
}

const asked = {
  ...{ call_gas_limit: Number(callGas), verification_gas_limit: 100_000, pre_verification_gas: 60_000 },
  ...{ paymaster_verification_gas_limit: 50_000, max_fee_per_gas: Number(price) },
};

test.each([
  ['gas', { gas }, { gas: gas - 1n }],
  ['the price', { maxFeePerGas: price }, { maxFeePerGas: price - 1n }],
  ['the whole fee', { fee: gas * price }, { fee: gas * price - 1n }],
] as const)(
  'an operation is planned up to the ceiling of %s, as in the signer',
  async (_, enough, tooLow) => {
    expect(await plan(enough)).toMatchObject({ callGas });
    expect(operationFeeExcess(asked, ceilingsOf(caip2, enough))).toBeUndefined();
    await expect(plan(tooLow)).rejects.toMatchObject({ code: 'transaction_broadcast_failure' });
    expect(operationFeeExcess(asked, ceilingsOf(caip2, tooLow))).toBeDefined();
  },
);
