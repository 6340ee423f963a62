import { decimalText, fromRaw } from '../../../assets/decimal.ts';
import { assetNamed } from '../../../assets/known-assets.ts';
import { chainOfCaip2 } from '../../../assets/known-chains.ts';
import type { Card } from '../../../generated/schemas.ts';
import type { PlanContext } from '../../../operation-context.ts';
import { askBalances } from '../../wallets/balances/ask-balances.ts';
import { listWalletsOfIds } from '../../wallets/wallets/find-wallet.ts';
import type { StoredCard } from './card.entity.ts';

type BalanceContext = Pick<PlanContext, 'app' | 'em' | 'chains' | 'log'>;

type Spending = Pick<StoredCard, 'walletId' | 'caip2' | 'asset'>;

/** What wallets hold of the assets that their cards spend, by `balanceKey`. Of chains that answered only. */
export type CardBalances = ReadonlyMap<string, string>;

function balanceKey({ walletId, caip2, asset }: Spending): string {
  return `${walletId} ${caip2} ${asset}`;
}

/** Asks the chains what the wallets of cards hold. Call it outside any transaction. */
export async function balancesOf(context: BalanceContext, cards: readonly Spending[]): Promise<CardBalances> {
  const distinct = [...new Map(cards.map((card) => [balanceKey(card), card])).entries()];
  const walletIds = [...new Set(cards.map(({ walletId }) => walletId))];
  const addresses = new Map(
    (await listWalletsOfIds(context, walletIds)).map(({ id, address }) => [id, address]),
  );
  const answers = await Promise.all(
    distinct.map(async ([key, card]) => {
      const address = addresses.get(card.walletId);
      const balance = address === undefined ? undefined : await balanceOf(context, card, address);
      return balance === undefined ? undefined : ([key, balance] as const);
    }),
  );
  return new Map(answers.filter((answer) => answer !== undefined));
}

async function balanceOf(
  { chains, log }: BalanceContext,
  { caip2, asset: name }: Spending,
  address: string,
): Promise<string | undefined> {
  const chain = chainOfCaip2(caip2);
  const asset = chain && assetNamed(chain, name);
  if (asset === undefined) return undefined;
  try {
    const [holding] = await askBalances({ chains }, [{ chain: asset.chain, address, assets: [asset] }]);
    return decimalText(fromRaw(holding?.rawAmount ?? 0n, asset.decimals));
  } catch (err) {
    log.warn({ err, caip2 }, 'the balance of a card could not be read');
    return undefined;
  }
}

/**
 * A card on the wire.
 *
 * CHOICE: no name: it is part of the submitted data of the verification, which is not stored.
 */
export function cardView(card: StoredCard, balances: CardBalances): Card {
  return {
    id: card.id,
    provider_id: card.issuerCardId,
    wallet_id: card.walletId,
    chain_id: card.caip2,
    asset: card.asset,
    status: card.status,
    brand: card.brand,
    last4: card.last4,
    exp_month: card.expMonth,
    exp_year: card.expYear,
    cardholder: { name: null },
    balance_formatted: balances.get(balanceKey(card)) ?? null,
    created_at: Math.floor(card.createdAtMs / 1000),
  };
}
