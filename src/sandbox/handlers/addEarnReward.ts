import { readChainAddress } from '../../assets/chain-address.ts';
import { invalidField } from '../../errors.ts';
import type { Handler } from '../control-plane.ts';
import { requireSimulatedEvm } from '../require-simulated.ts';

/** Decimals of a token that does not exist yet. */
const NEW_TOKEN_DECIMALS = 18;

export const run: Handler<'addEarnReward'> = async ({ body }, { chains, runDueJobs }) => {
  const caip2 = requireSimulatedEvm(chains, body.chain);
  const address = requireAddress('/address', body.address);
  const tokenAddress = requireAddress('/token_address', body.token_address);
  const rawAmount = BigInt(body.raw_amount);
  if (rawAmount === 0n) throw invalidField('/raw_amount', 'expected an amount above 0');
  const decimals = (await chains.decimalsOf(caip2, tokenAddress)) ?? NEW_TOKEN_DECIMALS;
  const token = { tokenAddress, decimals, symbol: 'RWD' };
  if (!(await chains.earn.addReward(caip2, { address, rawAmount, ...token }))) {
    throw invalidField('/raw_amount', 'expected less: an address is given below 2^208 of a token');
  }
  await runDueJobs();
  const found = await chains.earn.rewards(caip2, address);
  const reward = found?.rewards.find((each) => each.tokenAddress === tokenAddress);
  return {
    ...{ caip2, address, token_address: tokenAddress },
    amount_claimed: String(reward?.rawClaimed ?? 0n),
    amount_unclaimed: String((reward?.rawCumulative ?? 0n) - (reward?.rawClaimed ?? 0n)),
  };
};

function requireAddress(pointer: string, text: string): string {
  const address = readChainAddress('ethereum', text);
  if (address === undefined) throw invalidField(pointer, `expected an EVM address, got \`${text}\``);
  return address;
}
