import type { SqlEntityManager } from '@mikro-orm/sql';
import { vaultIdOf } from '../../../actions/vault-id.ts';
import type { KnownChain } from '../../../assets/known-chains.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import { WalletEntity } from '../../wallets/wallets/wallet.entity.ts';
import { EarnVaultEntity } from './earn-vault.entity.ts';
import type { EarnVault } from './find-vault.ts';

/** Who runs vaults. */
export const vaultProviders = ['aave', 'morpho', 'tempo', 'veda'] as const;

type VaultProvider = (typeof vaultProviders)[number];

/** A vault to set up for an app. */
export interface NewVault {
  /** Default: the one that follows from the contract and its asset. Another one is not recognized by a signer. */
  readonly id?: string;
  readonly appId: string;
  readonly provider: VaultProvider;
  readonly name: string | undefined;
  readonly chain: KnownChain;
  readonly address: string;
  readonly adminWalletId: string | null;
  /** The app's part of the yield, in hundredths of a percent. */
  readonly feeBps: number;
}

/** A vault as its contract describes it. */
export interface VaultFacts {
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

/** @throws ApiError invalid_data */
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
