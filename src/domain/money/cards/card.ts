import type { SqlEntityManager } from '@mikro-orm/sql';
import { decimalText, fromRaw } from '../../../engine/assets/decimal.ts';
import { assetNamed, type KnownAsset } from '../../../engine/assets/known-assets.ts';
import { chainOfCaip2 } from '../../../engine/assets/known-chains.ts';
import { ApiError, invalidQuery, notFound } from '../../../errors.ts';
import type { Card, CreateCardRequest } from '../../../generated/schemas.ts';
import type { CardEnvironment, CardIssuer, IssuedCard } from '../../../ports/cards.ts';
import {
  type OperationContext,
  type PlanContext,
  type Planned,
  unwrapPlan,
} from '../../../ports/operation-context.ts';
import { findPage } from '../../../storage/find-page.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { loadQuorums } from '../../access/owners/owner-quorums.ts';
import { lockUser } from '../../access/user-records/find-user.ts';
import { lookupKey } from '../../base/lookup-keys/lookup-key.ts';
import { askBalances } from '../../wallets/balances/balances.ts';
import { findWallet, findWalletForUpdate, listWalletsOfIds } from '../../wallets/wallets/find-wallet.ts';
import type { WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import { providerKey } from '../external-fiat-accounts/check-account.ts';
import { requireNetwork } from '../external-fiat-accounts/wallet-asset.ts';
import { CardEntity, type StoredCard } from './card.entity.ts';
import {
  askIssuer,
  findIssuer,
  getAccepted,
  type LookedAtCustomer,
  lookAtCustomer,
  requireCardUser,
  requireReady,
} from './card-customer.ts';

type BalanceContext = Pick<PlanContext, 'app' | 'em' | 'chains' | 'log'>;

type Spending = Pick<StoredCard, 'walletId' | 'caip2' | 'asset'>;

/**
 * The balances of wallets in the assets that their cards spend, by `balanceKey`. Balances on chains that did not
 * respond are missing.
 */
export type CardBalances = ReadonlyMap<string, string>;

function balanceKey({ walletId, caip2, asset }: Spending): string {
  return `${walletId} ${caip2} ${asset}`;
}

/** Reads the balances of the wallets of cards from the chains. Call it outside any transaction. */
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
    log.warn({ err, caip2 }, 'failed to read the balance of a card');
    return undefined;
  }
}

/**
 * Converts a card to wire form.
 *
 * CHOICE: the name of the cardholder is null. It is part of the data submitted for verification, which is not stored.
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

type FindContext = Pick<OperationContext, 'app' | 'em' | 'proof'>;

const MAX_PAGE = 100;

/**
 * Finds a card of the user.
 *
 * @throws ApiError missing_or_invalid_token, not_found
 */
export async function findCard(
  context: FindContext,
  cardId: string,
  environment: CardEnvironment,
  { isLocked = false }: { readonly isLocked?: boolean } = {},
): Promise<StoredCard> {
  const where = { ...ownCards(context, environment), id: lookupKey(cardId) };
  const card = await context.em.findOne(CardEntity, where, {
    ...(isLocked ? lockForUpdate : {}),
    // Read the row again, because the card may have changed since the plan read it.
    refresh: true,
  });
  if (card === null) throw notFound('Card');
  return card;
}

/**
 * Lists one page of the user's cards, newest first.
 *
 * @param query `cursor` is the `nextCursor` of the previous page; `limit` is 1 to 100, by default 100.
 * @throws ApiError missing_or_invalid_token; invalid_data for a cursor that is not a card of the user.
 */
export async function listCards(
  context: FindContext,
  query: {
    readonly environment: CardEnvironment;
    readonly cursor?: string | undefined;
    readonly limit?: number | undefined;
  },
): Promise<{ readonly cards: StoredCard[]; readonly nextCursor: string | null }> {
  const { environment, cursor, limit = MAX_PAGE } = query;
  const own = ownCards(context, environment);
  const after =
    cursor === undefined
      ? undefined
      : await context.em.findOne(CardEntity, { ...own, id: lookupKey(cursor) });
  if (after === null) throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
  const { page, nextCursor } = await findPage(context.em, CardEntity, own, { after, limit });
  return { cards: page, nextCursor };
}

function ownCards(context: FindContext, environment: CardEnvironment) {
  return { appId: context.app.id, userId: requireCardUser(context), environment };
}

/**
 * Refuses a canceled card.
 *
 * @throws ApiError invalid_state
 */
export function requireUsable({ status }: StoredCard): void {
  if (status === 'canceled') throw new ApiError('invalid_state', 'the card is canceled');
}

/** Returns a card of any app, for the sandbox's control plane; undefined if there is none with this id. */
export async function getCard(
  em: SqlEntityManager,
  cardId: string,
): Promise<{ readonly environment: CardEnvironment; readonly issuerCardId: string } | undefined> {
  const card = await em.findOne(CardEntity, { id: lookupKey(cardId) });
  if (card === null) return undefined;
  return { environment: card.environment as CardEnvironment, issuerCardId: card.issuerCardId };
}

/** Returns a card of any app by its id at the issuer, for the sandbox's control plane; undefined if there is none. */
export async function getCardOfIssuer(
  em: SqlEntityManager,
  issuerCardId: string,
): Promise<{ readonly id: string } | undefined> {
  return (await em.findOne(CardEntity, { issuerCardId })) ?? undefined;
}

/** The only asset that cards spend. Its units match the cents of the issuer's currency. */
const CARD_ASSET = 'usdc';

/**
 * Finds a wallet that belongs to the user.
 *
 * CHOICE: a wallet belongs to the user if the user alone can authorize requests of its owner. All other wallets count
 * as not found.
 *
 * @throws ApiError not_found
 */
export async function findOwnWallet(
  context: Pick<PlanContext, 'app' | 'em' | 'nowMs' | 'proof'>,
  walletId: string,
): Promise<WalletRow> {
  const userId = requireCardUser(context);
  const wallet = await findWallet(context, walletId);
  const ownerId = wallet.owner_id;
  const owner = ownerId === null ? undefined : (await loadQuorums(context, [ownerId])).get(ownerId);
  const isMember = owner?.users.some((user) => user.userId === userId) === true;
  const members =
    owner === undefined ? 0 : owner.publicKeys.length + owner.users.length + owner.quorums.length;
  if (!isMember || (owner?.threshold ?? members) !== 1) throw notFound('Wallet');
  return wallet;
}

/**
 * Returns the asset that a new card spends. The issuer must support it, and the wallet must be able to hold it.
 *
 * @throws ApiError not_supported
 */
function requireCardAsset(
  issuer: Pick<CardIssuer, 'networks'>,
  wallet: WalletRow,
  { asset, chain_id: caip2 }: Pick<CreateCardRequest, 'asset' | 'chain_id'>,
): KnownAsset & { readonly tokenAddress: string } {
  const chain = chainOfCaip2(caip2);
  // Only smart contracts on EVM chains support approved spenders.
  if (chain?.chainType !== 'ethereum') throw notSupported('/chain_id', `no cards spend on \`${caip2}\``);
  if (wallet.chain_type !== 'ethereum' || wallet.custody_provider !== null) {
    throw notSupported('/wallet_id', 'expected an `ethereum` wallet without a custodian');
  }
  requireNetwork(issuer, chain, '/environment');
  const known = asset === CARD_ASSET ? assetNamed(chain, asset) : undefined;
  if (known === undefined || known.tokenAddress === null) {
    throw notSupported('/asset', `cards spend \`${CARD_ASSET}\` only, where the chain has it`);
  }
  return { ...known, tokenAddress: known.tokenAddress };
}

function notSupported(pointer: string, message: string): ApiError {
  return new ApiError('not_supported', `${pointer}: ${message}`);
}

/** CHOICE: the maximum number of a user's cards in an environment. Canceled cards do not count. */
const MAX_CARDS = 10;

/** The card that the issuer issued before the transaction of the request, and the reports that it was issued on. */
export interface IssuedForRequest {
  readonly customer: LookedAtCustomer;
  readonly issued: IssuedCard;
  readonly balances: CardBalances;
}

/**
 * Checks the request and requests the card from the issuer.
 *
 * CHOICE: with the same idempotency key, a user gets the same card from the issuer. Without a key, each request gets
 * its own card.
 *
 * @throws ApiError missing_or_invalid_token, not_found, invalid_state, invalid_request, not_supported, unavailable
 */
export async function askForCard(context: PlanContext, body: CreateCardRequest): Promise<IssuedForRequest> {
  const userId = requireCardUser(context);
  const { environment, chain_id: caip2, asset } = body;
  const issuer = findIssuer(context, environment);
  const wallet = await findOwnWallet(context, body.wallet_id);
  const { tokenAddress, decimals } = requireCardAsset(issuer, wallet, body);
  const customer = await lookAtCustomer(context, environment);
  const { customerId } = await requireReady(context, environment, customer);
  await requireRoom(context, body);
  const attempt = context.idempotencyKey ?? context.requestId;
  const answer = await askIssuer(() =>
    issuer.issue({
      key: providerKey('card', context.app.id, userId, environment, wallet.id, caip2, asset, attempt),
      ...{ customerId, caip2, tokenAddress, decimals, address: wallet.address },
    }),
  );
  if ('fault' in answer) throw new ApiError('not_supported', `/chain_id: ${answer.message}`);
  const balances = await balancesOf(context, [{ walletId: wallet.id, caip2, asset }]);
  return { customer, issued: answer, balances };
}

/**
 * Stores the issued card. Repeats the checks, because their results may have changed since.
 *
 * @throws ApiError what `askForCard` throws.
 */
export async function createCard(
  context: OperationContext,
  body: CreateCardRequest,
  planned: Planned<IssuedForRequest>,
): Promise<Card> {
  const userId = requireCardUser(context);
  const { customer, issued, balances } = unwrapPlan(planned);
  await lockCardUser(context, userId);
  // INVARIANT: the first lock serializes the creation of a user's cards. The lock on the wallet keeps its owner from
  // changing until the transaction ends.
  await getAccepted(context, body.environment, lockForUpdate);
  const { id: walletId } = await findWalletForUpdate(context, body.wallet_id);
  await findOwnWallet(context, walletId);
  await requireReady(context, body.environment, customer);
  await requireRoom(context, body);
  const card = storeIssued(context, issued, {
    ...{ appId: context.app.id, userId, environment: body.environment },
    ...{ walletId, caip2: body.chain_id, asset: body.asset },
  });
  await context.em.flush();
  return cardView(card, balances);
}

/**
 * Locks the user of a new card, who may have been frozen since the request was authenticated.
 *
 * @throws ApiError missing_or_invalid_token, not_found
 */
export async function lockCardUser(
  context: Pick<OperationContext, 'app' | 'em'>,
  userId: string,
): Promise<void> {
  const { isFrozen } = await lockUser(context, userId);
  if (isFrozen) throw new ApiError('missing_or_invalid_token', 'the user of the access token is frozen');
}

/** Adds the row of an issued card. The caller flushes. */
export function storeIssued(
  { em, ids, nowMs }: OperationContext,
  issued: IssuedCard,
  of: Pick<StoredCard, 'appId' | 'userId' | 'environment' | 'walletId' | 'caip2' | 'asset'>,
): StoredCard {
  const { status, revision, brand, last4, expMonth, expYear } = issued;
  return em.create(CardEntity, {
    ...of,
    ...{ id: ids.cuid2(), issuerCardId: issued.id, status, revision, brand, last4, expMonth, expYear },
    ...{ cancellationReason: null, replacedById: null, createdAtMs: nowMs, nextCheckAtMs: null },
  });
}

async function requireRoom(
  context: PlanContext,
  { environment }: Pick<CreateCardRequest, 'environment'>,
): Promise<void> {
  const count = await context.em.count(CardEntity, {
    ...ownCards(context, environment),
    status: { $ne: 'canceled' },
  });
  if (count < MAX_CARDS) return;
  throw new ApiError('invalid_request', `expected at most ${MAX_CARDS} cards that are not canceled`);
}
