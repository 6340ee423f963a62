import { encodeFunctionData, erc20Abi } from 'viem';
import { issueAccessToken } from '../../src/domain/wallets/tokens/access-tokens.ts';
import type { Card } from '../../src/generated/schemas.ts';
import { createNotes, type OperationContext } from '../../src/ports/operation-context.ts';
import type { KnownCard } from './model.ts';
import { callUntilKnown, type Scene, type Script, unique } from './scripts.ts';
import { appId } from './server.ts';
import type { World } from './world.ts';

/** Where cards spend, and what. */
export const cardChain = 'eip155:84532';
export const cardUsdc = '0x036CbD53842c5426634e7929541eC2318f3dCF7e';
export const environment = 'sandbox';

/** A card that the user has at most. */
const MAX_CARDS = 6;

/** How long clients use a token, which the server accepts for an hour. */
const TOKEN_MS = 30 * 60_000;

const tokens = new WeakMap<World, Map<string, { readonly text: string; readonly sinceMs: number }>>();

/** An access token of a user, as a login gives it. Clients keep it for a while. */
export async function tokenOf(world: World, userId: string): Promise<string> {
  const kept = tokens.get(world) ?? new Map<string, { text: string; sinceMs: number }>();
  tokens.set(world, kept);
  const known = kept.get(userId);
  const { nowMs } = world.clock;
  if (known !== undefined && nowMs >= known.sinceMs && nowMs < known.sinceMs + TOKEN_MS) return known.text;
  const text = await issueToken(world, userId);
  kept.set(userId, { text, sinceMs: nowMs });
  return text;
}

async function issueToken({ parts }: World, userId: string): Promise<string> {
  const { services, database } = parts();
  const em = database.orm.em.fork() as OperationContext['em'];
  const context = { ...services, em, notes: createNotes(), app: { id: appId }, nowMs: services.clock.now() };
  return issueAccessToken(context, { userId, sessionId: 'session-of-the-simulation' });
}

/** The call data with which the owner lets the issuer take USDC. */
export const approvalOf = (spender: string, rawAmount: bigint): string =>
  encodeFunctionData({
    abi: erc20Abi,
    functionName: 'approve',
    args: [spender as `0x${string}`, rawAmount],
  });

const newCard = ({ id, provider_id: issuerId }: Card): KnownCard => ({
  ...{ id, issuerId, status: 'active', changes: 0, changesSent: 0, isCanceled: false },
});

/** Orders a card, once. */
export const orderCard: Script = async (scene) => {
  const { world, model, ids } = scene;
  if (model.cards.filter(({ isCanceled }) => !isCanceled).length >= MAX_CARDS) return;
  const { walletId: wallet_id, userId } = ids.holder;
  const body = { wallet_id, asset: 'usdc', chain_id: cardChain, environment };
  const outcome = await callUntilKnown(
    scene,
    'createCard',
    { body },
    { token: () => tokenOf(world, userId) },
  );
  if (outcome.kind !== 'done') return;
  if (model.cards.some(({ id }) => id === outcome.body.id))
    world.fail(`two orders made one card ${outcome.body.id}`);
  model.cards.push(newCard(outcome.body));
};

/** Freezes, unfreezes, cancels or replaces a card. */
export const changeCard: Script = async (scene) => {
  const { world, model } = scene;
  if (model.cards.length === 0) return;
  const card = world.random.pick(model.cards);
  const kind = world.random.weighted([
    [4, 'inactive'],
    [4, 'active'],
    [1, 'canceled'],
    [1, 'replace'],
  ] as const);
  card.changes += 1;
  card.changesSent += 1;
  const { isCanceled: wasCanceled, changesSent: place } = card;
  const wasAlone = card.changes === 1;
  card.status = undefined;
  const outcome = await requestChange(scene, card, kind);
  // A request that was not answered may still be on its way to the issuer.
  if (outcome.kind === 'unknown') return;
  card.changes -= 1;
  if (outcome.kind === 'refused') return;
  if (wasCanceled && (kind === 'active' || kind === 'inactive'))
    world.fail(`a canceled card was changed: ${card.id}`);
  const status = kind === 'replace' ? 'canceled' : kind;
  if (status === 'canceled') card.isCanceled = true;
  // Another one may have begun and ended meanwhile.
  else if (wasAlone && card.changesSent === place) card.status = status;
  if (kind === 'replace') model.cards.push(newCard(outcome.body as Card));
};

function requestChange(
  { world, ids }: Scene,
  { id }: KnownCard,
  kind: 'active' | 'inactive' | 'canceled' | 'replace',
) {
  const path = { card_id: id };
  const token = () => tokenOf(world, ids.holder.userId);
  return kind === 'replace'
    ? world.call('replaceCard', { path, body: { environment, replacement_reason: 'lost' } }, { token })
    : world.call('updateCard', { path, body: { environment, status: kind } }, { token });
}

const lacks = ['insufficient_funds', 'insufficient_allowance', 'limit_exceeded'];

/** A merchant asks for money; later it takes it, gives it back or forgets it. */
export const payByCard: Script = async (scene) => {
  const { world, model } = scene;
  const { random, outside, note } = world;
  const controls = outside.cardControls;
  const [earlier] = model.cardPayments.splice(0, random.chance(0.5) ? 1 : 0);
  if (earlier !== undefined) {
    const end = random.pick(['capture', 'reverse', 'refund'] as const);
    if (end === 'reverse') await controls.release(earlier, 'reversed');
    else await controls.capture(earlier, undefined);
    if (end === 'refund')
      await controls.refund(earlier, { cents: undefined, reference: `refund ${unique()}` });
    note(`merchant ${end} ${earlier}`);
  }
  if (model.cards.length === 0) return;
  const card = random.pick(model.cards);
  const { issuerId, isCanceled, status, changes } = card;
  const paid = await controls.authorize(environment, {
    ...{ cardId: issuerId, cents: BigInt(random.between(1, 500)), merchant: 'Shop', isDeclined: false },
    reference: `order ${unique()}`,
  });
  note(`merchant authorize ${issuerId} ${paid?.status} ${paid?.declineReason}`);
  world.count(`card payment ${paid?.status}`);
  if (paid === undefined) return world.fail(`the issuer does not know the card ${card.id}`);
  const mustDecline = isCanceled || (changes === 0 && status === 'inactive');
  if (mustDecline && paid.status !== 'declined')
    world.fail(`a payment with a frozen card ${card.id} was accepted`);
  const mustPay = !isCanceled && changes === 0 && status === 'active';
  if (mustPay && paid.status === 'declined' && !lacks.includes(paid.declineReason ?? ''))
    world.fail(`a payment with an active card ${card.id} was declined: ${paid.declineReason}`);
  if (paid.status === 'pending') model.cardPayments.push(paid.id);
};
