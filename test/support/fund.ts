import { assetNamed } from '../../src/engine/assets/known-assets.ts';
import { chainNamed, type KnownChain } from '../../src/engine/assets/known-chains.ts';
import type { TestSandbox } from './sandbox.ts';

/** Returns a chain of the contract. It must be known. */
export function chain(name: string): KnownChain {
  const known = chainNamed(name);
  if (known === undefined) throw new Error(`no chain ${name}`);
  return known;
}

/** Gives out an asset that the contract names, like the faucet. */
export async function fund(
  sandbox: TestSandbox,
  address: string,
  deposit: { readonly chain: string; readonly asset: string; readonly rawAmount: bigint },
): Promise<void> {
  const asset = assetNamed(chain(deposit.chain), deposit.asset);
  if (asset === undefined) throw new Error(`no ${deposit.asset} on ${deposit.chain}`);
  await fundToken(sandbox, address, { ...deposit, ...asset, chain: deposit.chain, symbol: asset.asset });
}

/** Gives out a token by its address. The token is created if it does not exist. */
export async function fundToken(
  sandbox: TestSandbox,
  address: string,
  deposit: {
    readonly chain: string;
    readonly tokenAddress: string | null;
    readonly rawAmount: bigint;
    readonly decimals: number;
    readonly symbol: string;
  },
): Promise<void> {
  const { tokenAddress, rawAmount, decimals, symbol } = deposit;
  const funded = await sandbox.chains.fund(chain(deposit.chain).caip2, {
    address,
    tokenAddress,
    rawAmount,
    decimals,
    symbol,
  });
  if ('fault' in funded) throw new Error(funded.message);
}
