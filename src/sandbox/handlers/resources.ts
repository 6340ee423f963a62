import { raw } from '@mikro-orm/core';
import { listEvery } from '../../domain/list-every.ts';
import { worthOf, worthText } from '../../domain/wallets/balances/balances.ts';
import { WalletEntity } from '../../domain/wallets/wallets/wallet.entity.ts';
import { add, fromRaw, readDecimal, ZERO } from '../../engine/assets/decimal.ts';
import { chainOfCaip2 } from '../../engine/assets/known-chains.ts';
import type { ControlContext, Handler } from '../control-plane.ts';
import { named, ownersOf, policyNames } from '../names.ts';

export const listSandboxWallets: Handler<'listSandboxWallets'> = async ({ query }, context) => {
  const { search, app_id: appId } = query;
  const { page, nextCursor, owners, policies } = await context.read(async (em) => {
    const where = {
      ...(appId === undefined ? {} : { appId }),
      ...(search === undefined ? {} : containing(search)),
    };
    const found = await listEvery(em, WalletEntity, query, { where });
    const owners = await ownersOf(
      em,
      found.page.flatMap(({ ownerId }) => ownerId ?? []),
      context.keyNames,
    );
    const policies = await policyNames(
      em,
      found.page.flatMap(({ policyId }) => policyId ?? []),
    );
    return { ...found, owners, policies };
  });
  const worths = await worthsOf(
    page.map(({ address }) => address),
    context,
  );
  return {
    data: page.map((wallet) => ({
      id: wallet.id,
      app_id: wallet.appId,
      name: wallet.displayName,
      external_id: wallet.externalId,
      chain_type: wallet.chainType,
      address: wallet.address,
      created_at_ms: wallet.createdAtMs,
      archived_at_ms: wallet.archivedAtMs,
      owner: (wallet.ownerId === null ? undefined : owners.get(wallet.ownerId)) ?? null,
      policies: wallet.policyId === null ? [] : [named(wallet.policyId, policies)],
      worth_usd: hasPrices(wallet.chainType) ? (worths.get(wallet.address) ?? '0') : null,
    })),
    next_cursor: nextCursor,
  };
};

/** The condition that one of a wallet's texts contains `text`. SQLite folds only ASCII letters. */
function containing(text: string): object {
  const folded = text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
  const texts = `lower(coalesce(display_name, '') || char(10) || coalesce(external_id, '') || char(10) || address || char(10) || id)`;
  return { [raw(`instr(${texts}, ?) > 0`, [folded])]: [] };
}

/** The chain types whose assets have a price. */
function hasPrices(chainType: string): boolean {
  return pricedChainTypes.has(chainType);
}

const pricedChainTypes = new Set(['ethereum', 'solana', 'tron']);

/**
 * The value in US dollars of the balances of addresses on the simulated chains, by address.
 *
 * CHOICE: assets without a price and assets of test networks count as nothing.
 */
async function worthsOf(
  addresses: readonly string[],
  { chains, prices }: Pick<ControlContext, 'chains' | 'prices'>,
): Promise<ReadonlyMap<string, string>> {
  const holdings = await chains.holdings(addresses);
  const usd = await prices.all();
  const sums = new Map(addresses.map((address) => [address, ZERO]));
  for (const { caip2, address, rawAmount, decimals, pricedAs } of holdings) {
    if (chainOfCaip2(caip2)?.isTestnet !== false) continue;
    const price = readDecimal(usd.get(pricedAs) ?? '') ?? ZERO;
    sums.set(address, add(sums.get(address) ?? ZERO, worthOf(fromRaw(rawAmount, decimals), price)));
  }
  return new Map([...sums].map(([address, worth]) => [address, worthText(worth)]));
}
