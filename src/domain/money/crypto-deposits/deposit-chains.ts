import {
  assetAtAddress,
  assetNamed,
  assetsOf,
  type KnownAsset,
} from '../../../engine/assets/known-assets.ts';
import {
  chainNamed,
  chainOfCaip2,
  type KnownChain,
  knownChains,
} from '../../../engine/assets/known-chains.ts';
import { ApiError, notFound } from '../../../errors.ts';
import type { GetCryptoDepositAccountOrderResponse } from '../../../generated/schemas.ts';
import type { OperationContext, PlanContext } from '../../../ports/operation-context.ts';
import { ExecutionEntity, type StoredExecution } from '../../access/automations/automation.entity.ts';
import { NATIVE } from '../../access/automations/automation.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import { findWalletAction } from '../wallet-actions/wallet-action.ts';

/** The address that stands for the native asset in other APIs. */
export const ZERO_ADDRESS = `0x${'0'.repeat(40)}`;

/** The services that determine where deposits can be converted. */
type DepositServices = Pick<PlanContext, 'chains' | 'exchange' | 'swapRoutes'>;

/** The party that pays the gas of conversions. A new deposit address has no gas; an existing wallet may have some. */
export type GasPayer = 'paymaster' | 'wallet';

/**
 * Returns the EVM chains on which deposits are converted, in the order of the API document.
 *
 * CHOICE: deposits are accepted on EVM chains only, because other chains have no paymasters here.
 */
export function depositChains(services: DepositServices, payer: GasPayer = 'paymaster'): KnownChain[] {
  return [false, true]
    .flatMap((isTestnet) => knownChains({ isTestnet, chainType: 'ethereum' }))
    .filter((chain) => faultOf(services, chain, payer) === undefined);
}

/**
 * Refuses a chain on which deposits are not converted.
 *
 * @throws ApiError not_supported
 */
export function requireDepositChain(
  services: DepositServices,
  chain: KnownChain,
  { payer, pointer }: { readonly payer: GasPayer; readonly pointer: string },
): void {
  const fault = faultOf(services, chain, payer);
  if (fault !== undefined) throw notSupported(pointer, fault);
}

function faultOf(
  { chains, exchange, swapRoutes }: DepositServices,
  { name, caip2, chainType }: KnownChain,
  payer: GasPayer,
): string | undefined {
  if (chainType !== 'ethereum') return `deposits are accepted on EVM chains only, not on \`${name}\``;
  const chain = chains.find(caip2);
  if (chain?.kind !== 'evm') return `the chain \`${name}\` is not configured here`;
  if (exchange === undefined && swapRoutes?.supports(caip2) !== true) {
    return `nothing is exchanged on \`${name}\` here`;
  }
  if (payer === 'paymaster' && chain.bundler === undefined)
    return `no paymaster pays gas on \`${name}\` here`;
  return undefined;
}

/**
 * Finds the chain with this name or CAIP-2 id.
 *
 * @throws ApiError not_supported
 */
export function requireChainText(text: string, pointer: string): KnownChain {
  const chain = chainNamed(text) ?? chainOfCaip2(text);
  if (chain === undefined) throw notSupported(pointer, `the chain \`${text}\` is not supported`);
  return chain;
}

/**
 * Returns the asset with this name or token address on a chain; undefined for an unknown asset.
 *
 * CHOICE: only assets with a name in the API count, because only these are exchanged between chains.
 */
export function assetOfText(chain: KnownChain, text: string): KnownAsset | undefined {
  if (text === NATIVE || text === ZERO_ADDRESS) {
    return assetsOf(chain).find(({ tokenAddress }) => tokenAddress === null);
  }
  return assetNamed(chain, text.toLowerCase()) ?? assetAtAddress(chain, text);
}

/**
 * Finds the asset with this name or token address on a chain.
 *
 * @throws ApiError not_supported
 */
export function requireAssetText(chain: KnownChain, text: string, pointer: string): KnownAsset {
  const asset = assetOfText(chain, text);
  if (asset === undefined) throw notSupported(pointer, `no asset \`${text}\` is known on \`${chain.name}\``);
  return asset;
}

export function notSupported(pointer: string, message: string): ApiError {
  return new ApiError('not_supported', `${pointer}: ${message}`);
}

type FindContext = Pick<OperationContext, 'app' | 'em'>;
type Order = GetCryptoDepositAccountOrderResponse;

/**
 * Finds an order: the execution that a deposit to a deposit address started.
 *
 * CHOICE: it is found under the destination wallet and under the wallet at the address, because routes name the latter.
 *
 * @throws ApiError not_found
 */
export async function findOrder(context: FindContext, walletId: string, orderId: string): Promise<Order> {
  const wallet = await findWallet(context, walletId);
  const execution = await context.em.findOne(ExecutionEntity, { id: orderId, ...ordersOf(wallet.id) });
  if (execution === null) throw notFound('Order');
  return orderView(context, execution);
}

/**
 * Finds the first order of a wallet that started after a given time; null if there is none.
 *
 * @param after RFC 3339.
 * @throws ApiError not_found for an unknown wallet.
 */
export async function findNextOrder(
  context: FindContext,
  walletId: string,
  after: string,
): Promise<Order | null> {
  const wallet = await findWallet(context, walletId);
  const [execution] = await context.em.find(
    ExecutionEntity,
    { ...ordersOf(wallet.id), createdAtMs: { $gt: Date.parse(after) } },
    { orderBy: { createdAtMs: 'asc', id: 'asc' }, limit: 1 },
  );
  return execution === undefined ? null : orderView(context, execution);
}

function ordersOf(walletId: string) {
  return {
    destinationWalletId: { $ne: null },
    $or: [{ destinationWalletId: walletId }, { walletId }],
  };
}

async function orderView(context: FindContext, execution: StoredExecution): Promise<Order> {
  return { id: execution.id, status: await statusOf(context, execution) };
}

async function statusOf(
  context: FindContext,
  { status, walletId, actionId, sweptById }: StoredExecution,
): Promise<Order['status']> {
  if (status === 'completed') return 'succeeded';
  if (status === 'pending' || status === 'submitted') return 'pending';
  if (status === 'skipped') {
    const sweep = sweptById === null ? null : await context.em.findOne(ExecutionEntity, { id: sweptById });
    // Without another execution that swept the deposit, the owner spent it before it was converted.
    return sweep === null ? 'rejected' : statusOf(context, sweep);
  }
  // Without an action, nothing was sent to the chain.
  if (actionId === null) return 'rejected';
  return (await findWalletAction(context, walletId, actionId)).status;
}
