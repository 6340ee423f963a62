import { invalidField } from '../../errors.ts';
import type { Handler } from '../control-plane.ts';
import { rawAmountOf } from '../raw-amount.ts';
import { requireSimulated } from '../require-simulated.ts';
import { tokenAddressOf } from '../token-address.ts';

const pointers = { address: '/address', tokenAddress: '/token_address', rawAmount: '/raw_amount' } as const;

export const run: Handler<'fundAddress'> = async ({ body }, { chains, runDueJobs }) => {
  const caip2 = requireSimulated(chains, body.chain);
  const { address, symbol } = body;
  const tokenAddress = tokenAddressOf(caip2, body);
  // CHOICE: a new token defaults to the usual decimals on its chain.
  const defaultDecimals = caip2.startsWith('eip155:') ? 18 : 6;
  const decimals = (await chains.decimalsOf(caip2, tokenAddress)) ?? body.decimals ?? defaultDecimals;
  const rawAmount = rawAmountOf(body, decimals);
  const funded = await chains.fund(caip2, { address, tokenAddress, rawAmount, decimals, symbol });
  if ('fault' in funded) throw invalidField(pointers[funded.fault], funded.message);
  await runDueJobs();
  return {
    caip2,
    address,
    token_address: tokenAddress,
    raw_amount: String(rawAmount),
    decimals,
    raw_balance: String(funded.rawBalance),
    transaction_hash: funded.hash,
    block_number: Number(funded.blockNumber),
  };
};
