import { connectChains } from '../adapters/chain-rpc/connect.ts';
import { makeLog } from '../adapters/log.ts';
import { makeIds, systemClock, systemEntropy } from '../adapters/runtime.ts';
import type { DatabaseConfig, NodesConfig } from '../config/config.ts';
import { findApp } from '../domain/access/apps/find-app.ts';
import { recordChange } from '../domain/access/operators/operator.ts';
import { addVault, type NewVault, readVaultFacts, vaultProviders } from '../domain/money/earn/earn-vault.ts';
import { readChainAddress } from '../engine/assets/addresses.ts';
import { chainNamed } from '../engine/assets/known-chains.ts';
import { invalidField } from '../errors.ts';
import { inUnitOf, unitsOf } from '../server/unit-of-work.ts';
import { commandLine, requireMigrated, withDatabase } from './administration.ts';

/** The vault that a command adds. */
export interface WantedVault {
  readonly appId: string;
  readonly chain: string;
  readonly address: string;
  readonly provider: string;
  readonly name?: string | undefined;
  readonly adminWalletId?: string | undefined;
  readonly feeBps: number;
}

/** A vault, as commands print it. */
export interface AdministeredVault {
  readonly id: string;
  readonly name: string;
  readonly caip2: string;
  readonly address: string;
  readonly asset_address: string;
  readonly asset_symbol: string;
  readonly asset_decimals: number;
}

/**
 * Adds a vault to an app. The properties of the vault are read from the chain.
 *
 * @throws ApiError not_found, invalid_data, not_supported, resource_conflict, transaction_broadcast_failure.
 */
export async function addEarnVault(
  database: DatabaseConfig,
  nodes: NodesConfig,
  wanted: WantedVault,
): Promise<AdministeredVault> {
  const vault = readVault(wanted);
  const log = makeLog({ level: 'warn', format: 'text', descriptor: 2 });
  const facts = await readVaultFacts({ chains: connectChains(nodes.rpc, log) }, vault.chain, vault.address);
  return withDatabase(database, async ({ orm, ...opened }) => {
    await requireMigrated({ orm, ...opened });
    const context = { ids: makeIds(systemEntropy), nowMs: systemClock.now() };
    const added = await inUnitOf(unitsOf({ orm }))(async (em, notes) => {
      const own = { ...context, em, notes };
      await findApp(own.em, vault.appId);
      const added = await addVault(own, vault, facts);
      const change = { appId: vault.appId, action: 'addEarnVault', targets: { vault_id: added.id } };
      await recordChange({ ...own, by: commandLine }, change);
      return added;
    });
    return {
      ...{ id: added.id, name: added.name, caip2: added.caip2, address: added.address },
      ...{ asset_address: added.assetAddress, asset_symbol: added.assetSymbol },
      asset_decimals: added.assetDecimals,
    };
  });
}

function readVault({ chain: name, provider: given, adminWalletId, ...wanted }: WantedVault): NewVault {
  const chain = chainNamed(name);
  if (chain?.chainType !== 'ethereum') {
    throw invalidField('/chain', `expected the name of an EVM chain, got \`${name}\``);
  }
  const address = readChainAddress('ethereum', wanted.address);
  if (address === undefined) {
    throw invalidField('/address', `expected an EVM address, got \`${wanted.address}\``);
  }
  const provider = vaultProviders.find((known) => known === given);
  if (provider === undefined) {
    throw invalidField('/provider', `expected one of ${vaultProviders.join(', ')}, got \`${given}\``);
  }
  const admin = { adminWalletId: adminWalletId ?? null };
  return { ...wanted, ...admin, name: wanted.name, chain, address, provider };
}
