import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Services } from '../../../operation-context.ts';
import type { CardEnvironment, CardStatus, IssuedCard } from '../../../ports/card-issuers.ts';
import { lockForUpdate, lockUnlocked } from '../../../storage/locks.ts';
import { getUser } from '../../access/user-records/find-user.ts';
import { noteChange } from '../../base/events/stored-effects.ts';
import { prepareQuery } from '../../prepared-query.ts';
import { CardEntity, type StoredCard } from './card.entity.ts';

/** How long a claimed card belongs to the process that claimed it. */
const LEASE_MS = 10_000;

/** A card whose status the issuer is to learn. */
export interface DueCard {
  readonly card: StoredCard;
  readonly status: CardStatus;
}

// HOT: runs every second, and rarely finds a row; a prepared statement takes a tenth of the CPU (idle sandbox).
const selectDue = prepareQuery<{ nowMs: number }, { id: string }>((database, { nowMs }) =>
  database.selectFrom('cards').select('id').where('next_check_at_ms', '<=', nowMs).limit(1),
);

/**
 * Claims cards whose issuer must learn of a change, the most overdue first; the claim of a process that dies expires.
 *
 * @param wanted `busy`: environments whose cards are left out.
 */
export async function claimDueCards(
  em: SqlEntityManager,
  nowMs: number,
  { busy, limit }: { readonly busy: readonly string[]; readonly limit: number },
): Promise<readonly DueCard[]> {
  const { rows } = await selectDue(em, { nowMs });
  if (rows.length === 0) return [];
  const cards = await em.find(
    CardEntity,
    { nextCheckAtMs: { $lte: nowMs }, environment: { $nin: [...busy] } },
    { orderBy: { nextCheckAtMs: 'asc', id: 'asc' }, limit, ...lockUnlocked },
  );
  const due: DueCard[] = [];
  for (const card of cards) {
    card.nextCheckAtMs = nowMs + LEASE_MS;
    due.push({ card, status: await statusFor(em, card) });
  }
  await em.flush();
  return due;
}

/** CHOICE: the cards of a frozen user are frozen at the issuer for as long as the user is. */
async function statusFor(em: SqlEntityManager, card: StoredCard): Promise<CardStatus> {
  if (card.status === 'canceled') return 'canceled';
  const user = await getUser({ em, app: { id: card.appId } }, card.userId);
  if (user === undefined) return 'canceled';
  return user.row.frozen_at_ms === null ? (card.status as CardStatus) : 'inactive';
}

/** Reports the status to the issuer. Call it outside any transaction. */
export async function reportToIssuer(
  { cardIssuers }: Pick<Services, 'cardIssuers'>,
  { card, status }: DueCard,
): Promise<IssuedCard | undefined> {
  const issuer = cardIssuers.find(card.environment as CardEnvironment);
  const reported = await issuer?.change(card.issuerCardId, { status });
  return reported === undefined || 'fault' in reported ? undefined : reported;
}

/** The issuer knows: nothing is due unless something has changed meanwhile. */
export async function settleCard(
  em: SqlEntityManager,
  { card: { id, nextCheckAtMs }, status }: DueCard,
  { revision }: IssuedCard,
): Promise<void> {
  const card = await em.findOne(CardEntity, { id }, lockForUpdate);
  if (card === null) return;
  card.revision = Math.max(card.revision, revision);
  if (status === 'canceled') card.status = 'canceled';
  if (card.nextCheckAtMs === nextCheckAtMs) card.nextCheckAtMs = null;
  noteChange(em, { appId: card.appId, what: `card.reported_${status}`, id });
  await em.flush();
}
