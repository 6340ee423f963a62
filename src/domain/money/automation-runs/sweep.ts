import { ApiError } from '../../../errors.ts';
import type { EarnRequest, ExecuteWalletSwapRequest } from '../../../generated/schemas.ts';
import type { OperationContext, PreparationContext } from '../../../operation-context.ts';
import type { AnyChain } from '../../../ports/chains.ts';
import { keepPrepared } from '../../../prepared.ts';
import { NATIVE } from '../../access/automations/automation-assets.ts';
import type { StoredExecution } from '../../access/automations/execution.entity.ts';
import { depositIntoVault, prepareDeposit } from '../earn/deposit-into-vault.ts';
import { executeWalletSwap, prepareSwap } from '../swaps/execute-wallet-swap.ts';
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
 * Prepares the sweep of a wallet's whole balance of the deposited asset. Of the native asset the gas is left, unless the
 * chain's paymaster pays it.
 *
 * Result: undefined if there is nothing to sweep.
 *
 * @throws ApiError not_supported; the chain's error when it cannot be reached.
 */
export async function prepareSweep(
  context: PreparationContext,
  { walletId, caip2, assetAddress, action }: StoredExecution,
  address: string,
): Promise<Sweep | undefined> {
  const chain = context.chains.find(caip2);
  if (chain === undefined)
    throw new ApiError('not_supported', `the chain \`${caip2}\` is not configured here`);
  const token = assetAddress === NATIVE ? null : assetAddress;
  const [held = 0n] = await chain.balances(address, [token]);
  if (held === 0n) return undefined;
  if (action.type === 'earn_deposit') {
    const body: EarnRequest = { vault_id: action.vault_id, raw_amount: String(held) };
    const prepared = await keepPrepared(() => prepareDeposit(context, walletId, body));
    return { run: (unit) => depositIntoVault(unit, { walletId, body, prepared }) };
  }
  const paysGas = token === null && !isSponsored(context, chain, action);
  const rawAmount = paysGas ? held - (await gasReserve(chain)) : held;
  if (rawAmount <= 0n) {
    throw new ApiError('insufficient_funds', 'the balance does not pay the gas of the action');
  }
  const { destination_chain_asset: destination, destination_address: recipient } = action;
  const body: ExecuteWalletSwapRequest = {
    source: { asset_address: assetAddress, caip2 },
    destination: {
      ...destination,
      ...(recipient === undefined ? {} : { destination_address: recipient }),
    },
    base_amount: String(rawAmount),
  };
  const prepared = await keepPrepared(() => prepareSwap(context, walletId, body));
  return { run: (unit) => executeWalletSwap(unit, { walletId, body, prepared }) };
}

/** Whether the chain's paymaster pays: for swaps by a router of a chain that has a bundler. */
function isSponsored(
  { swapRoutes }: PreparationContext,
  chain: AnyChain,
  action: Extract<StoredExecution['action'], { readonly type: 'swap' }>,
): boolean {
  const isRouted = action.destination_chain_asset.caip2 === chain.caip2 && swapRoutes?.supports(chain.caip2);
  return isRouted === true && chain.kind === 'evm' && chain.bundler !== undefined;
}

async function gasReserve(chain: AnyChain): Promise<bigint> {
  if (chain.kind === 'evm') return (await chain.fees()).maxFeePerGas * RESERVED_GAS;
  return chain.kind === 'solana' ? RESERVED_LAMPORTS : 0n;
}
