import assert from 'node:assert/strict';
import { funds, seededNames } from '../../mocks/wallets.ts';
import { claimTransfers, recordDeposits } from '../domain/money/transactions/record-funds.ts';
import { symbolOf } from '../domain/wallets/balances/balances.ts';
import { listWallets } from '../domain/wallets/wallets/find-wallet.ts';
import type { WalletRow } from '../domain/wallets/wallets/wallet.entity.ts';
import { assetNamed, type KnownAsset } from '../engine/assets/known-assets.ts';
import { chainNamed } from '../engine/assets/known-chains.ts';
import type { Services } from '../ports/operation-context.ts';
import type { SimulatedChains } from '../sandbox/simulated/chains/simulated-chains.ts';
import { inUnitOf, unitsOf } from '../server/unit-of-work.ts';
import type { Database } from '../storage/open-database.ts';
import type { FundedWallet } from './local-server.ts';

interface Faucet {
  readonly chains: Pick<SimulatedChains, 'has' | 'fund'>;
  readonly services: Pick<Services, 'log'>;
}

interface FundedSandbox extends Faucet {
  readonly appId: string;
  readonly database: Database;
  readonly services: Services;
}

/** An amount of an asset that a wallet gets, in base units. */
interface Gift {
  readonly asset: KnownAsset;
  readonly rawAmount: bigint;
}

/** Returns the assets that the wallets of a chain type get, ordered by chain. Chains with real nodes are left out. */
function giftsFor(chainType: string, chains: Pick<SimulatedChains, 'has'>): Gift[] {
  return Object.entries(funds[chainType] ?? {}).flatMap(([chainName, amounts]) => {
    const chain = chainNamed(chainName);
    assert(chain, `expected the name of a chain, got \`${chainName}\``);
    if (!chains.has(chain.caip2)) return [];
    return Object.entries(amounts).map(([name, units]) => {
      const asset = assetNamed(chain, name);
      assert(asset, `expected an asset of ${chainName}, got \`${name}\``);
      return { asset, rawAmount: BigInt(units) * 10n ** BigInt(asset.decimals) };
    });
  });
}

/** Gives a wallet gas and stablecoins from the faucet. Does nothing for chain types without such funds. */
export async function fundWallet(
  { chains, services }: Faucet,
  { address, chainType }: { readonly address: string; readonly chainType: string },
): Promise<void> {
  for (const { asset, rawAmount } of giftsFor(chainType, chains)) {
    const { tokenAddress, decimals, chain } = asset;
    const token = tokenAddress === null ? {} : { decimals, symbol: symbolOf(asset.asset) };
    const funded = await chains.fund(chain.caip2, { address, tokenAddress, rawAmount, ...token });
    if ('fault' in funded) {
      services.log.warn({ caip2: chain.caip2, address, reason: funded.message }, 'a wallet was not funded');
    }
  }
}

/**
 * Funds the wallets of the seed data.
 *
 * CHOICE: funding seed data creates no deposit events, because seed data represents the state before any endpoint
 * existed.
 */
export async function fundSeeds(sandbox: FundedSandbox): Promise<void> {
  for (const { address, chain_type: chainType } of await seededWallets(sandbox)) {
    await fundWallet(sandbox, { address, chainType });
  }
  await skipDeposits(sandbox);
}

/** Marks everything on the funded chains as already scanned, so that the funds are not reported as deposits. */
async function skipDeposits({ services, database }: FundedSandbox): Promise<void> {
  const inUnit = inUnitOf(unitsOf(database));
  const claimant = { owner: services.processId, nowMs: services.clock.now() };
  const watched = { among: async () => new Set<string>(), nextOnSolana: async () => [] };
  for (const caip2 of (await services.chains.listing?.()) ?? []) {
    const chain = services.chains.find(caip2);
    for (let hasMore = chain?.transfersAfter !== undefined; hasMore; ) {
      const claim = await inUnit((em) => claimTransfers(em, { ...claimant, caip2 }));
      if (claim === undefined) break;
      const page = await chain!.transfersAfter!({ ...claim, limit: 1000, watched });
      hasMore = page.hasMore;
      await inUnit((em, notes) =>
        recordDeposits(
          { ids: services.ids, nowMs: claimant.nowMs, em, notes },
          { ...{ caip2, ...claim, ...page }, transfers: [] },
        ),
      );
    }
  }
}

async function seededWallets({
  appId,
  database,
}: Pick<FundedSandbox, 'appId' | 'database'>): Promise<WalletRow[]> {
  const context = { app: { id: appId }, em: database.orm.em.fork() };
  const pages = await Promise.all(
    seededNames.map((externalId) => listWallets(context, { externalId }, { limit: 1 })),
  );
  return pages.flatMap(({ wallets }) => wallets);
}

/** Returns the wallets of the seed data with their current balances, for the start-up message. */
export async function readFundedWallets(
  sandbox: Pick<FundedSandbox, 'appId' | 'database' | 'services' | 'chains'>,
): Promise<FundedWallet[]> {
  const found: FundedWallet[] = [];
  for (const { address, display_name: name, chain_type: chainType } of await seededWallets(sandbox)) {
    const balances = new Map<string, string>();
    for (const { asset } of giftsFor(chainType, sandbox.chains)) {
      const [raw = 0n] =
        (await sandbox.services.chains.find(asset.chain.caip2)?.balances(address, [asset.tokenAddress])) ??
        [];
      const amount = Number(raw / 10n ** BigInt(Math.max(0, asset.decimals - 2))) / 100;
      const text = `${amount.toLocaleString('en-US')} ${symbolOf(asset.asset)}`;
      balances.set(
        asset.chain.name,
        [balances.get(asset.chain.name), text].flatMap((each) => each ?? []).join(', '),
      );
    }
    found.push({ name: name ?? address, address, balances: Object.fromEntries(balances) });
  }
  return found;
}
