import { decimalText, fromRaw } from '../../../assets/decimal.ts';
import { chainOfCaip2, type KnownChain } from '../../../assets/known-chains.ts';
import { ApiError } from '../../../errors.ts';
import type {
  AutomationAssetSpec,
  EarnRequest,
  ExecuteWalletSwapRequest,
  TransferRequest,
} from '../../../generated/schemas.ts';
import type { OperationContext, PlanContext } from '../../../operation-context.ts';
import { keepPlan } from '../../../planned.ts';
import type { AnyChain } from '../../../ports/chains.ts';
import { isSameAsset, NATIVE } from '../../access/automations/automation-assets.ts';
import type { StoredExecution } from '../../access/automations/execution.entity.ts';
import { findToken } from '../../access/chains/find-token.ts';
import { depositIntoVault, prepareDeposit } from '../earn/deposit-into-vault.ts';
import { callChain } from '../sending/call-chain.ts';
import { paysForAutomations } from '../sending/send-operation.ts';
import { executeWalletSwap, prepareSwap } from '../swaps/execute-wallet-swap.ts';
import type { SwapPlan } from '../swaps/plan-swap.ts';
import { prepareTransfer, transferFromWallet } from '../wallet-actions/transfer-from-wallet.ts';
import type { WalletActionRow } from '../wallet-actions/wallet-action-row.ts';
import type { Spending } from './worthwhile.ts';

/** CHOICE: the gas that is left in a wallet whose native asset is swept: enough for an approval and a swap. */
const RESERVED_GAS = 500_000n;
/** CHOICE: lamports that are left on Solana: the fee of a transaction and the rent of the accounts that it makes. */
const RESERVED_LAMPORTS = 5_000_000n;

/** The action of an execution, planned outside the transaction. */
export interface Sweep {
  /** The verb of the direct operation. */
  run(context: OperationContext): Promise<WalletActionRow>;
  /** Undefined if the verb refuses it anyway. */
  readonly spending: Spending | undefined;
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
  context: PlanContext,
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
    const planned = await keepPlan(() => prepareDeposit(context, walletId, body));
    const spending =
      'value' in planned ? { caip2, cost: planned.value.cost, proceeds: planned.value.deposited } : undefined;
    return { run: (unit) => depositIntoVault(unit, { walletId, body, planned }), spending };
  }
  const paysGas = token === null && !paysForAutomations(context, chain);
  const rawAmount = paysGas ? held - (await gasReserve(chain)) : held;
  if (rawAmount <= 0n) {
    throw new ApiError('insufficient_funds', 'the balance does not pay the gas of the action');
  }
  const source = { asset_address: assetAddress, caip2 };
  const { destination_chain_asset: asset, destination_address: recipient } = action;
  if (recipient !== undefined && isSameAsset(asset, source)) {
    return prepareForwarding(context, { walletId, recipient, source, rawAmount });
  }
  const body: ExecuteWalletSwapRequest = {
    source,
    destination: { ...asset, ...(recipient === undefined ? {} : { destination_address: recipient }) },
    base_amount: String(rawAmount),
  };
  const planned = await keepPlan(() => prepareSwap(context, walletId, body));
  const spending = 'value' in planned ? spendingOf(caip2, asset, planned.value) : undefined;
  return { run: (unit) => executeWalletSwap(unit, { walletId, body, planned }), spending };
}

function spendingOf(caip2: string, destination: AutomationAssetSpec, plan: SwapPlan): Spending {
  const { offer, cost } = plan;
  const rawAmount = offer.by === 'route' ? offer.route.rawOutputMin : offer.exchange.quote.rawOutput;
  const { asset_address: address } = destination;
  const token = address === NATIVE ? null : address;
  return { caip2, cost, proceeds: { caip2: destination.caip2, token, rawAmount } };
}

interface Forwarding {
  readonly walletId: string;
  readonly recipient: string;
  readonly source: AutomationAssetSpec;
  readonly rawAmount: bigint;
}

/** Prepares the transfer of what needs no swap because it is the destination asset already. */
async function prepareForwarding(
  context: PlanContext,
  { walletId, recipient, source, rawAmount }: Forwarding,
): Promise<Sweep> {
  const known = chainOfCaip2(source.caip2);
  if (known === undefined)
    throw new ApiError('not_supported', `the chain \`${source.caip2}\` is not supported`);
  const isNative = source.asset_address === NATIVE;
  const { asset, decimals } = isNative
    ? requireNative(known)
    : await callChain(findToken(context, known, source.asset_address));
  const named = isNative || asset !== source.asset_address;
  const body: TransferRequest = {
    source: {
      ...(named ? { asset } : { asset_address: source.asset_address }),
      ...{ chain: known.name, amount: decimalText(fromRaw(rawAmount, decimals)) },
    } as TransferRequest['source'],
    destination: { address: recipient },
  };
  const planned = await keepPlan(() => prepareTransfer(context, walletId, body));
  const run: Sweep['run'] = (unit) => transferFromWallet(unit, { walletId, body, planned });
  if (!('value' in planned)) return { run, spending: undefined };
  const proceeds = { caip2: source.caip2, token: isNative ? null : source.asset_address, rawAmount };
  const cost = BigInt(planned.value.estimatedGas?.base_amount ?? 0);
  return { run, spending: { caip2: source.caip2, cost, proceeds } };
}

function requireNative({ native, name }: KnownChain): { readonly asset: string; readonly decimals: number } {
  if (native === undefined) throw new ApiError('not_supported', `\`${name}\` has no native asset`);
  return native;
}

async function gasReserve(chain: AnyChain): Promise<bigint> {
  if (chain.kind === 'evm') return (await chain.fees()).maxFeePerGas * RESERVED_GAS;
  return chain.kind === 'solana' ? RESERVED_LAMPORTS : 0n;
}
