import assert from 'node:assert/strict';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { usdcVault } from '../../mocks/earn-vaults.ts';
import { treasuryQuorum } from '../../mocks/key-quorums.ts';
import { spendingPolicy } from '../../mocks/policies.ts';
import { aliceUser, bobUser } from '../../mocks/users.ts';
import { acmeSolanaWallet, acmeWallet, aliceWallet, treasuryWallet } from '../../mocks/wallets.ts';
import { EarnVaultEntity } from '../domain/money/earn/earn-vault.entity.ts';
import { addVault } from '../domain/money/earn/earn-vault.ts';
import { assetNamed } from '../engine/assets/known-assets.ts';
import { chainNamed } from '../engine/assets/known-chains.ts';
import { ApiError } from '../errors.ts';
import type { OperationId, Operations } from '../generated/operations.ts';
import { registry } from '../generated/registry.ts';
import type { OperationContext } from '../ports/operation-context.ts';
import type { SimulatedChains } from '../sandbox/simulated/chains/simulated-chains.ts';
import { handlersOf } from '../server/operation-contexts.ts';

/** The operations that create a resource from only a body. */
type Creation = 'createUser' | 'createKeyQuorum' | 'createPolicy' | 'createWallet';

/** Creates the named seed data through the handlers of the API. */
export async function plantSeedData(
  context: OperationContext,
  simulates: (caip2: string) => boolean,
): Promise<void> {
  const plant = <Id extends Creation & OperationId>(id: Id, body: Operations[Id]['body']) =>
    createSeeded(context, id, body);
  await plant('createUser', aliceUser);
  await plant('createUser', bobUser);
  const quorum = await plant('createKeyQuorum', treasuryQuorum);
  const policy = await plant('createPolicy', spendingPolicy);
  const acme = await plant('createWallet', acmeWallet);
  await plant('createWallet', acmeSolanaWallet);
  await plant('createWallet', aliceWallet);
  await plant('createWallet', {
    ...treasuryWallet,
    ...(quorum === undefined ? {} : { owner_id: quorum.id }),
    ...(policy === undefined ? {} : { policy_ids: [policy.id] }),
  });
  const { asset, address, ...vault } = seededVault();
  if (acme === undefined || !simulates(vault.chain.caip2)) return;
  const facts = {
    ...{ assetAddress: asset.address, assetSymbol: asset.symbol, assetDecimals: asset.decimals },
  };
  await addVault(context, { ...vault, address, appId: context.app.id, adminWalletId: acme.id }, facts);
}

/** The vault in the seed data, with its chain and asset. */
function seededVault() {
  const { chain: chainName, asset: assetName, apyBps: _, ...vault } = usdcVault;
  const chain = chainNamed(chainName);
  const asset = chain && assetNamed(chain, assetName);
  assert(chain !== undefined && asset?.tokenAddress != null, 'the vault of the seeds has an unknown asset');
  const { tokenAddress, decimals } = asset;
  return { ...vault, chain, asset: { address: tokenAddress, symbol: assetName.toUpperCase(), decimals } };
}

/** Plans the vault of the seed data, if it is stored, so that it is created when its simulated chain is first used. */
export async function planSeededVault(
  em: SqlEntityManager,
  chains: Pick<SimulatedChains, 'has' | 'earn'>,
): Promise<void> {
  const row = await em.findOne(EarnVaultEntity, { id: usdcVault.id });
  if (row === null || !chains.has(row.caip2)) return;
  const { address, assetAddress: asset, assetSymbol: symbol, assetDecimals: decimals, feeBps } = row;
  chains.earn.planVault(row.caip2, {
    ...{ address, asset, symbol, decimals, feeBps, admin: row.adminAddress, apyBps: usdcVault.apyBps },
    ...{ feeKind: 'claimable', offset: 0 },
  });
}

/** Creates a resource and returns it. Undefined if the operation is not implemented. */
async function createSeeded<Id extends Creation>(
  context: OperationContext,
  id: Id,
  body: Operations[Id]['body'],
): Promise<Operations[Id]['response'] | undefined> {
  const { plan, run: handler } = handlersOf(registry)[id]!;
  const input = { path: {}, query: {}, body };
  try {
    const planned = { value: await plan?.(input, context) };
    return (await handler(input, context, planned)) as Operations[Id]['response'];
  } catch (error) {
    if (error instanceof ApiError && error.code === 'not_implemented') return undefined;
    throw error;
  }
}
