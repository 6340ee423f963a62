import { swapRouter, tokenVault } from '../../../../../engine/signing/ethereum/contract-calls.ts';

/** The account that a call of the router or a vault pays. Undefined for other calls. */
export function paidAccount(data: Uint8Array): string | undefined {
  const swap = swapRouter.decodeCall(data);
  // The last arguments of all swaps: the path, the recipient and the deadline.
  if (swap?.name.startsWith('swap')) return swap.args.at(-2) as string;
  const call = tokenVault.decodeCall(data);
  return call?.name === 'withdraw' || call?.name === 'redeem' ? (call.args[1] as string) : undefined;
}
