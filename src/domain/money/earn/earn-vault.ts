import type { InferEntity } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { type EarnAmount, readEarnAmount, vaultIdOf } from '../../../engine/actions/earn-terms.ts';
import {
  type Decimal,
  decimalText,
  fromRaw,
  multiply,
  readDecimal,
  round,
} from '../../../engine/assets/decimal.ts';
import { assetAtAddress } from '../../../engine/assets/known-assets.ts';
import { chainOfCaip2, type KnownChain } from '../../../engine/assets/known-chains.ts';
import { type AbiValue, feeVault, tokenVault } from '../../../engine/signing/ethereum/contract-calls.ts';
import { checksumAddress } from '../../../engine/signing/ethereum/signer.ts';
import { ApiError, invalidField, notFound } from '../../../errors.ts';
import type { EarnRequest, EthereumEarnVaultDetailsResponse } from '../../../generated/schemas.ts';
import type { EvmChain, VaultRate } from '../../../ports/chains.ts';
import type { OperationContext, PlanContext, Services } from '../../../ports/operation-context.ts';
import { findToken, readChain, requireKnownChain } from '../../access/chains/chains.ts';
import { refusingTerms } from '../../base/actions/action-refusals.ts';
import { WalletEntity, type WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import { callChain, requireChain } from '../sending/call-chain.ts';
import { EarnVaultEntity } from './earn-vault.entity.ts';

export type EarnVault = InferEntity<typeof EarnVaultEntity>;

type FindContext = Pick<PlanContext, 'em' | 'app'>;

/**
 * Finds the app's vault with the id in the path.
 *
 * @throws ApiError not_found
 */
export async function findVault(context: FindContext, id: string): Promise<EarnVault> {
  const vault = await lookUp(context, id);
  if (vault === null) throw notFound('Vault');
  return vault;
}

/**
 * Finds the app's vault with the id in the body.
 *
 * @param pointer JSON pointer to the id.
 * @throws ApiError invalid_data
 */
export async function findNamedVault(
  context: FindContext,
  id: string,
  pointer = '/vault_id',
): Promise<EarnVault> {
  const vault = await lookUp(context, id);
  if (vault === null) throw invalidField(pointer, `expected the id of a vault of this app, got \`${id}\``);
  return vault;
}

/**
 * Finds the vault with this id, of any app.
 *
 * @throws ApiError not_found
 */
export async function getVault(em: SqlEntityManager, id: string): Promise<EarnVault> {
  const vault = await em.findOne(EarnVaultEntity, { id });
  if (vault === null) throw notFound('Vault');
  return vault;
}

/**
 * Returns the chain of a vault.
 *
 * @throws ApiError not_supported for a chain without a name in the API.
 */
export function chainOfVault({ caip2 }: EarnVault): KnownChain {
  const chain = chainOfCaip2(caip2);
  if (chain === undefined) throw new ApiError('not_supported', `the chain \`${caip2}\` is not supported`);
  return chain;
}

function lookUp({ em, app }: FindContext, id: string): Promise<EarnVault | null> {
  return em.findOne(EarnVaultEntity, { id, appId: app.id });
}

/** The protocols whose vaults this server supports. */
export const vaultProviders = ['aave', 'morpho', 'tempo', 'veda'] as const;

type VaultProvider = (typeof vaultProviders)[number];

/** A vault to set up for an app. */
export interface NewVault {
  /**
   * The vault's id, by default derived from the smart contract and its asset. A signer does not recognize a vault with
   * another id.
   */
  readonly id?: string;
  readonly appId: string;
  readonly provider: VaultProvider;
  readonly name: string | undefined;
  readonly chain: KnownChain;
  readonly address: string;
  readonly adminWalletId: string | null;
  /** The app's share of the yield, in hundredths of a percent. */
  readonly feeBps: number;
}

/** The state of a vault, read from its smart contract. */
interface VaultFacts {
  readonly assetAddress: string;
  readonly assetSymbol: string;
  readonly assetDecimals: number;
}

/**
 * Sets up a vault for an app.
 *
 * @throws ApiError invalid_data for an admin wallet that the app does not have; resource_conflict for a vault that is
 * already set up.
 */
export async function addVault(
  { em, nowMs }: { readonly em: SqlEntityManager; readonly nowMs: number },
  vault: NewVault,
  facts: VaultFacts,
): Promise<EarnVault> {
  const { appId, provider, chain, adminWalletId, feeBps } = vault;
  if (adminWalletId === null && provider !== 'tempo') {
    throw invalidField('/admin_wallet_id', `expected a wallet: a vault of \`${provider}\` has an admin`);
  }
  const adminAddress = await adminAddressOf(em, appId, adminWalletId);
  const place = { appId, caip2: chain.caip2, address: vault.address };
  const asset = { address: facts.assetAddress, decimals: facts.assetDecimals };
  const row: EarnVault = {
    ...{ id: vault.id ?? vaultIdOf(place, asset), ...place, provider, ...facts },
    ...{ name: vault.name ?? `${facts.assetSymbol} on ${chain.name}`, adminWalletId, adminAddress, feeBps },
    createdAtMs: nowMs,
  };
  const known = await em.findOne(EarnVaultEntity, { appId, caip2: row.caip2, address: row.address });
  if (known !== null) throw new ApiError('resource_conflict', 'the app has already set up this vault');
  em.create(EarnVaultEntity, row);
  await em.flush();
  return row;
}

/**
 * Returns the address of the wallet that administers a vault.
 *
 * @throws ApiError invalid_data if the app has no such wallet.
 */
export async function adminAddressOf(
  em: SqlEntityManager,
  appId: string,
  adminWalletId: string | null,
): Promise<string> {
  if (adminWalletId === null) return `0x${'0'.repeat(40)}`;
  const wanted = { id: adminWalletId, appId, chainType: 'ethereum', archivedAtMs: null };
  const wallet = await em.findOne(WalletEntity, wanted);
  if (wallet !== null) return wallet.address;
  throw invalidField('/admin_wallet_id', `expected an Ethereum wallet of the app, got \`${adminWalletId}\``);
}

/**
 * Returns the chain of a vault if it is configured.
 *
 * @throws ApiError not_supported when it is not configured.
 */
export function requireVaultChain(
  context: Pick<PlanContext, 'chains'>,
  { caip2 }: Pick<EarnVault, 'caip2'>,
): EvmChain {
  return requireChain(context, { caip2, kind: 'evm', pointer: '/vault_id' });
}

type AmountQuery =
  | 'totalAssets'
  | 'convertToAssets'
  | 'maxDeposit'
  | 'maxWithdraw'
  | 'maxRedeem'
  | 'previewDeposit';

/**
 * Calls a view function of a vault that returns an amount. Returns undefined if the call returns no amount, for example
 * because there is no vault at the address.
 */
export async function askVault(
  chain: EvmChain,
  { address }: Pick<EarnVault, 'address'>,
  name: AmountQuery,
  ...args: AbiValue[]
): Promise<bigint | undefined> {
  const data = await chain.read({ to: address, data: tokenVault.encodeCall(name, ...args) });
  const [amount] = tokenVault.decodeResult(name, data) ?? [];
  return typeof amount === 'bigint' ? amount : undefined;
}

/** Reads the fees that the app can collect from a vault; undefined if this kind of vault holds no fees. */
export async function askFees(chain: EvmChain, { address }: EarnVault): Promise<bigint | undefined> {
  const data = await chain.read({ to: address, data: feeVault.encodeCall('getClaimableFees') });
  const [amount] = feeVault.decodeResult('getClaimableFees', data) ?? [];
  return typeof amount === 'bigint' ? amount : undefined;
}

/** Reads which token a vault accepts; undefined if there is no vault at the address. */
async function askAsset(chain: EvmChain, address: string): Promise<string | undefined> {
  const data = await chain.read({ to: address, data: tokenVault.encodeCall('asset'), isConstant: true });
  const [asset] = tokenVault.decodeResult('asset', data) ?? [];
  return typeof asset === 'string' ? asset : undefined;
}

/**
 * Reads the asset of a vault from its smart contract. Call it outside any database transaction.
 *
 * @throws ApiError invalid_data when there is no vault at the address; not_supported; transaction_broadcast_failure.
 */
export async function readVaultFacts(
  services: Pick<Services, 'chains'>,
  chain: KnownChain,
  address: string,
): Promise<VaultFacts> {
  const evm = requireVaultChain(services, chain);
  const asset = await callChain(askAsset(evm, address));
  if (asset === undefined)
    throw invalidField('/address', `expected the address of a vault, got \`${address}\``);
  const assetAddress = checksumAddress(asset.slice(2));
  const token = await callChain(findToken(services, chain, assetAddress));
  // CHOICE: the symbol of an asset without a name in the API is the beginning of its address.
  const assetSymbol = token.asset === assetAddress ? assetAddress.slice(0, 8) : token.asset.toUpperCase();
  return { assetAddress, assetSymbol, assetDecimals: token.decimals };
}

/**
 * Converts a vault to wire form, with the current values of its smart contract.
 *
 * @throws ApiError not_supported; unavailable.
 */
export async function readVaultView(
  context: OperationContext,
  vault: EarnVault,
): Promise<EthereumEarnVaultDetailsResponse> {
  const known = chainOfVault(vault);
  const chain = requireKnownChain(context, known) as EvmChain;
  const [total, [held = 0n], fees] = await readChain(
    Promise.all([
      askVault(chain, vault, 'totalAssets'),
      chain.balances(vault.address, [vault.assetAddress]),
      vault.provider === 'aave' ? askFees(chain, vault) : 0n,
    ]),
    known,
  );
  const price = await priceOf(context, vault);
  const rate = await context.vaultRates?.rateOf(vault.caip2, vault.address);
  const worth = (rawAmount: bigint | undefined): number | null =>
    rawAmount === undefined || price === undefined
      ? null
      : Number(decimalText(round(multiply(fromRaw(rawAmount, vault.assetDecimals), price), 2)));
  return {
    id: vault.id,
    provider: vault.provider,
    name: vault.name,
    vault_address: vault.address,
    caip2: vault.caip2,
    asset: assetView(vault),
    admin_wallet_id: vault.adminWalletId,
    admin_wallet_address: vault.adminAddress,
    tvl_usd: worth(total),
    available_liquidity_usd: worth(total === undefined ? undefined : held - (fees ?? 0n)),
    user_apy: rate === undefined ? null : userApyOf(rate),
    app_apy: rate === undefined ? null : (rate.apyBps * rate.feeBps) / 10_000,
    ...(vault.provider === 'aave' ? { available_fees: String(fees ?? 0n) } : {}),
    // Rewards are paid per account, so a vault has no reward rate.
    ...(vault.provider === 'morpho' ? { total_rewards_apr: 0 } : {}),
  } as EthereumEarnVaultDetailsResponse;
}

export function assetView({ assetAddress, assetSymbol, assetDecimals }: EarnVault) {
  return { address: assetAddress, symbol: assetSymbol, decimals: assetDecimals };
}

/** Returns the yearly yield of depositors, in hundredths of a percent. */
export function userApyOf({ apyBps, feeBps }: VaultRate): number {
  return (apyBps * (10_000 - feeBps)) / 10_000;
}

/** Returns the price of one unit in US dollars; undefined for assets without a name or price, and on test networks. */
async function priceOf({ prices }: OperationContext, vault: EarnVault): Promise<Decimal | undefined> {
  const chain = chainOfVault(vault);
  const asset = assetAtAddress(chain, vault.assetAddress)?.asset;
  if (asset === undefined || chain.isTestnet) return undefined;
  return readDecimal((await prices.inUsd([asset])).get(asset) ?? '');
}

/** The terms of a deposit or withdrawal, after all checks that need no chain data. */
export interface EarnTerms extends EarnAmount {
  readonly vault: EarnVault;
}

/**
 * Refuses a wallet that cannot use vaults.
 *
 * @throws ApiError not_supported
 */
export function requireEarnWallet({ chain_type: chainType, custody_provider: custodian }: WalletRow): void {
  if (custodian !== null) {
    throw new ApiError('not_supported', 'the custodian of this wallet takes no vault calls from here');
  }
  if (chainType !== 'ethereum') {
    throw new ApiError('not_supported', `expected a wallet of type \`ethereum\`, got \`${chainType}\``);
  }
}

/**
 * Reads the body of a deposit or withdrawal.
 *
 * @throws ApiError not_supported; invalid_data naming the field.
 */
export async function readEarnBody(
  context: Pick<PlanContext, 'em' | 'app'>,
  wallet: WalletRow,
  body: EarnRequest,
): Promise<EarnTerms> {
  requireEarnWallet(wallet);
  const vault = await findNamedVault(context, body.vault_id);
  return { vault, ...refusingTerms(() => readEarnAmount(body, vault.assetDecimals)) };
}

/** Returns the wire fields that all actions on a vault have. */
export function vaultFields(vault: EarnVault, rawAmount: bigint): object {
  const known = assetAtAddress(chainOfVault(vault), vault.assetAddress);
  return {
    vault_id: vault.id,
    vault_address: vault.address,
    asset_address: vault.assetAddress,
    caip2: vault.caip2,
    raw_amount: String(rawAmount),
    amount: decimalText(fromRaw(rawAmount, vault.assetDecimals)),
    ...(known === undefined ? {} : { asset: known.asset }),
    decimals: vault.assetDecimals,
  };
}
