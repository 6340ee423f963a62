import { ApiError } from '../../../errors.ts';
import type { OperationContext, PreparationContext } from '../../../operation-context.ts';
import type { AnyChain } from '../../../ports/chains.ts';
import type { StoredExecution } from '../../access/automations/execution.entity.ts';
import { NATIVE } from '../../access/automations/resolve-config.ts';
import type { WalletActionRow } from '../wallet-actions/wallet-action-row.ts';

/** CHOICE: the gas that is left in a wallet whose native asset is swept: enough for an approval and a swap. */
const RESERVED_GAS = 500_000n;
/** CHOICE: lamports that are left on Solana: the fee of a transaction and the rent of the accounts that it makes. */
const RESERVED_LAMPORTS = 5_000_000n;

/** The action of an execution, prepared outside the transaction. */
export interface Sweep {
  /** The verb of the direct operation. */
  run(context: OperationContext): Promise<WalletActionRow>;
}

/**
 * Prepares the sweep of a wallet's whole balance of the deposited asset. Of the native asset the gas is left.
 *
 * Result: undefined if there is nothing to sweep.
 *
 * @throws ApiError not_supported; the chain's error when it cannot be reached.
 */
export async function prepareSweep(
  context: PreparationContext,
  { caip2, assetAddress, action }: StoredExecution,
  address: string,
): Promise<Sweep | undefined> {
  const chain = context.chains.find(caip2);
  if (chain === undefined)
    throw new ApiError('not_supported', `the chain \`${caip2}\` is not configured here`);
  const token = assetAddress === NATIVE ? null : assetAddress;
  const [held = 0n] = await chain.balances(address, [token]);
  if (held === 0n) return undefined;
  const rawAmount = token === null ? held - (await gasReserve(chain)) : held;
  if (rawAmount <= 0n)
    throw new ApiError('insufficient_funds', 'the balance does not pay the gas of the action');
  const what = action.type === 'swap' ? 'swaps' : 'deposits into vaults';
  throw new ApiError('not_supported', `${what} are not available here`);
}

async function gasReserve(chain: AnyChain): Promise<bigint> {
  if (chain.kind === 'evm') return (await chain.fees()).maxFeePerGas * RESERVED_GAS;
  return chain.kind === 'solana' ? RESERVED_LAMPORTS : 0n;
}
