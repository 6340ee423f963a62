import type { CardChange, CardOrder, CardRefusal, CardStatus, IssuedCard } from '../../../ports/cards.ts';
import { numberOf, readPin } from './card-secrets.ts';
import { type CardParts, refuse } from './parts.ts';

export interface CardRow {
  readonly id: string;
  readonly request_key: string;
  readonly customer_id: string;
  readonly caip2: string;
  readonly token: string;
  readonly decimals: number;
  /** The address of the wallet from which the card pays. */
  readonly address: string;
  readonly status: CardStatus;
  readonly reason: string | null;
  readonly last4: string;
  readonly exp_month: number;
  readonly exp_year: number;
  readonly pin_mac: string | null;
  readonly wrong_pins: number;
  readonly revision: number;
  readonly successor: string | null;
}

const BRAND = 'visa';
/** CHOICE: for how many years a card is valid. */
const YEARS = 4;

export function findCard({ store, environment }: CardParts, id: string): CardRow | undefined {
  return store.first('select * from issuer_cards where environment = ? and id = ?', environment, id);
}

/** Issues a card for an asset of a simulated EVM chain, or returns the reason for a refusal. */
export async function issue(parts: CardParts, order: CardOrder): Promise<IssuedCard | CardRefusal> {
  const { store, environment } = parts;
  const chain = order.caip2.startsWith('eip155:') ? await parts.chain(order.caip2) : undefined;
  if (chain === undefined) return refuse('pair', `the issuer does not spend on \`${order.caip2}\``);
  return store.atomically(() => {
    const known = store.first<CardRow>(
      'select * from issuer_cards where environment = ? and request_key = ?',
      ...[environment, order.key],
    );
    return viewOf(known ?? insert(parts, order));
  });
}

function insert(
  parts: CardParts,
  { key, customerId, caip2, tokenAddress, decimals, address }: CardOrder,
): CardRow {
  const { store, environment, ids, clock } = parts;
  const id = ids.uuid();
  const now = new Date(clock.now());
  store.run(
    `insert into issuer_cards values (?, ?, ?, ?, ?, ?, ?, ?, 'active', null, ?, ?, ?, null, 0, 1, null)`,
    ...[environment, id, key, customerId, caip2, tokenAddress, decimals, address.toLowerCase()],
    ...[numberOf(parts, id).slice(-4), now.getUTCMonth() + 1, now.getUTCFullYear() + YEARS],
  );
  return findCard(parts, id)!;
}

/**
 * Changes a card, or returns the reason for a refusal. A cancellation is final; canceling again changes nothing.
 */
export async function change(
  parts: CardParts,
  cardId: string,
  { status, reason, encryptedPin }: CardChange,
): Promise<IssuedCard | CardRefusal> {
  const pin = encryptedPin === undefined ? null : await readPin(parts, cardId, encryptedPin);
  if (pin === undefined) return refuse('data', 'expected 4 to 12 digits, encrypted with the publishable key');
  const { store, environment } = parts;
  return store.atomically(() => {
    const card = findCard(parts, cardId);
    if (card === undefined) return refuse('state', 'the issuer has no such card');
    if (card.status === 'canceled') {
      const isSame = status === 'canceled' && pin === null;
      return isSame ? viewOf(card) : refuse('state', 'the card is canceled');
    }
    store.run(
      `update issuer_cards set status = ?, reason = ?, pin_mac = ?, wrong_pins = ?, revision = revision + 1
       where environment = ? and id = ?`,
      ...[status ?? card.status, reason ?? null, pin ?? card.pin_mac, pin === null ? card.wrong_pins : 0],
      ...[environment, cardId],
    );
    return viewOf(findCard(parts, cardId)!);
  });
}

/** Cancels a card and issues its successor, or returns the successor that it already has. */
export function replace(
  parts: CardParts,
  cardId: string,
  reason: 'lost' | 'stolen' | 'expired',
): { readonly old: IssuedCard; readonly successor: IssuedCard } {
  const { store, environment } = parts;
  return store.atomically(() => {
    const card = findCard(parts, cardId);
    if (card === undefined) throw new Error('the issuer has no such card');
    if (card.successor !== null) {
      return { old: viewOf(card), successor: viewOf(findCard(parts, card.successor)!) };
    }
    const successor = insert(parts, {
      ...{ key: `successor of ${cardId}`, customerId: card.customer_id, caip2: card.caip2 },
      ...{ tokenAddress: card.token, decimals: card.decimals, address: card.address },
    });
    store.run(
      `update issuer_cards set status = 'canceled', reason = coalesce(reason, ?), successor = ?, revision = revision + 1
       where environment = ? and id = ?`,
      ...[reason, successor.id, environment, cardId],
    );
    return { old: viewOf(findCard(parts, cardId)!), successor: viewOf(successor) };
  });
}

function viewOf({ id, status, last4, exp_month, exp_year, revision }: CardRow): IssuedCard {
  return { id, status, brand: BRAND, last4, expMonth: exp_month, expYear: exp_year, revision };
}
