import type { CardPayment, PaymentPage, PostedQuery } from '../../../ports/cards.ts';
import type { Simulated } from '../chains/world.ts';
import { simulateIdentityOffice } from '../fiat/identity-office.ts';
import { pinMac } from './card-secrets.ts';
import { type CardRow, findCard } from './cards.ts';
import { type CardParts, issuerAddress, pay, type Shortfall } from './parts.ts';

/**
 * INVARIANT: for each chain and asset, the balance of the issuer's account is exactly the sum of pending and captured
 * payments minus refunds. It contains no money of declined, reversed or expired payments.
 */

type DeclineReason =
  | Shortfall
  | 'card_canceled'
  | 'card_inactive'
  | 'customer_not_ready'
  | 'declined_by_issuer'
  | 'incorrect_pin'
  | 'limit_exceeded'
  | 'pin_blocked';

/** A payment or refund as testers see it. */
export interface TestPayment extends CardPayment {
  readonly cardId: string;
  readonly declineReason: string | null;
  /** The hash of the latest transfer on the chain. */
  readonly hash: string | null;
}

/** A merchant's request for a payment. */
export interface Authorization {
  readonly cardId: string;
  readonly cents: bigint;
  readonly merchant: string | null;
  /** Two requests for one card with the same reference are one payment. */
  readonly reference: string;
  readonly pin?: string | undefined;
  readonly isDeclined: boolean;
}

/**
 * The reason why a payment does not allow a tester's action: the amount is too high, the funds are too low, or the
 * payment has the wrong status.
 */
export type PaymentFault = 'amount' | 'funds' | 'status';

interface PaymentRow {
  readonly position: number;
  readonly id: string;
  readonly card_id: string;
  readonly kind: CardPayment['kind'];
  readonly parent_id: string | null;
  readonly reference: string;
  readonly status: CardPayment['status'];
  readonly cents: string;
  readonly merchant: string | null;
  readonly reason: string | null;
  readonly created_ms: number;
  readonly posted_ms: number | null;
  readonly hash: string | null;
}

/** CHOICE: the maximum of one payment, and of all payments with a card within a day, in cents. */
const MAX_PAYMENT = 500_000n;
const MAX_DAY = 1_000_000n;
const DAY_MS = 86_400_000;
/** CHOICE: a merchant can capture a fifth more than was authorized, for example to include a tip. */
const OVER_CAPTURE_PERCENT = 120n;
/** CHOICE: a payment that is not captured within a week expires. */
const EXPIRES_MS = 7 * DAY_MS;
const MAX_WRONG_PINS = 3;
const CURRENCY = 'usd';
const BATCH = 50;
/** One unit of the asset is worth one US dollar, or 100 cents. */
const CENT_DECIMALS = 2;

/** Authorizes a payment for a merchant. Returns undefined for an unknown card. */
export async function authorize(parts: CardParts, order: Authorization): Promise<TestPayment | undefined> {
  await expireDue(parts);
  const found = findCard(parts, order.cardId);
  if (found === undefined) return undefined;
  const [chain, customer] = await Promise.all([
    parts.chain(found.caip2),
    simulateIdentityOffice(parts).customer(found.customer_id),
  ]);
  const isReady =
    customer?.status === 'active' &&
    customer.endorsements.some(({ name, status }) => name === 'cards' && status === 'approved');
  return parts.store.atomically(() => {
    const known = findByReference(parts, order, 'purchase');
    if (known !== undefined) return viewOf(known);
    // Read the card again, because it may have been frozen since the first read.
    const card = findCard(parts, order.cardId)!;
    const refusal = chain === undefined ? 'declined_by_issuer' : refusalOf(parts, { card, order, isReady });
    const taken = refusal ?? take(parts, { card, chain: chain!, cents: order.cents });
    return viewOf(insert(parts, { ...order, kind: 'purchase', taken }));
  });
}

function refusalOf(
  parts: CardParts,
  { card, order, isReady }: { card: CardRow; order: Authorization; isReady: boolean },
): DeclineReason | undefined {
  if (card.status !== 'active') return `card_${card.status}`;
  if (order.isDeclined) return 'declined_by_issuer';
  if (!isReady) return 'customer_not_ready';
  const wrong = order.pin === undefined ? undefined : checkPin(parts, card, order.pin);
  if (wrong !== undefined) return wrong;
  const isOver = order.cents > MAX_PAYMENT || spentToday(parts, card) + order.cents > MAX_DAY;
  return isOver ? 'limit_exceeded' : undefined;
}

/**
 * Returns why a PIN is declined, or undefined if it is right. After three wrong PINs in a row, none is accepted until a
 * new PIN is set.
 */
function checkPin(
  parts: CardParts,
  { id, pin_mac: mac, wrong_pins: wrong }: CardRow,
  pin: string,
): DeclineReason | undefined {
  if (wrong >= MAX_WRONG_PINS) return 'pin_blocked';
  const isRight = mac !== null && pinMac(parts, id, pin) === mac;
  parts.store.run(
    'update issuer_cards set wrong_pins = ? where environment = ? and id = ?',
    ...[isRight ? 0 : wrong + 1, parts.environment, id],
  );
  return isRight ? undefined : 'incorrect_pin';
}

function spentToday({ store, environment, clock }: CardParts, { id }: CardRow): bigint {
  const rows = store.all<{ cents: string }>(
    `select cents from issuer_payments where environment = ? and card_id = ? and kind = 'purchase'
       and status in ('pending', 'posted') and created_ms > ?`,
    ...[environment, id, clock.now() - DAY_MS],
  );
  return rows.reduce((sum, { cents }) => sum + BigInt(cents), 0n);
}

/** Captures the authorized amount, a smaller one, or up to a fifth more. Returns undefined for an unknown payment. */
export function capture(
  parts: CardParts,
  id: string,
  asked: bigint | undefined,
): Promise<TestPayment | PaymentFault | undefined> {
  return settle(parts, id, ({ payment, card, chain }) => {
    const authorized = BigInt(payment.cents);
    const cents = asked ?? authorized;
    if (payment.status === 'posted' && payment.kind === 'purchase') {
      return cents === authorized ? payment : 'status';
    }
    if (payment.status !== 'pending') return 'status';
    if (cents === 0n || cents * 100n > authorized * OVER_CAPTURE_PERCENT) return 'amount';
    const rest = authorized - cents;
    const moved =
      rest < 0n ? take(parts, { card, chain, cents: -rest }) : give(parts, { card, chain, cents: rest });
    if (typeof moved === 'string') return 'funds';
    parts.store.run(
      `update issuer_payments set status = 'posted', cents = ?, posted_ms = ?, expires_ms = null,
         hash = coalesce(?, hash) where id = ?`,
      ...[String(cents), parts.clock.now(), moved?.hash ?? null, payment.id],
    );
    return findPayment(parts, payment.id)!;
  });
}

/**
 * Reverses or expires an authorized payment and returns its money to the wallet. Returns undefined for an unknown
 * payment.
 */
export function release(
  parts: CardParts,
  id: string,
  status: 'reversed' | 'expired',
): Promise<TestPayment | PaymentFault | undefined> {
  return settle(parts, id, ({ payment, card, chain }) => {
    if (payment.status === status) return payment;
    if (payment.status !== 'pending') return 'status';
    const moved = give(parts, { card, chain, cents: BigInt(payment.cents) });
    parts.store.run(
      'update issuer_payments set status = ?, expires_ms = null, hash = coalesce(?, hash) where id = ?',
      ...[status, moved?.hash ?? null, payment.id],
    );
    return findPayment(parts, payment.id)!;
  });
}

/** Refunds a captured payment or a part of it. Returns undefined for an unknown payment. */
export function refund(
  parts: CardParts,
  id: string,
  { cents: asked, reference }: { cents: bigint | undefined; reference: string },
): Promise<TestPayment | PaymentFault | undefined> {
  return settle(parts, id, ({ payment, card, chain }) => {
    const known = findByReference(parts, { cardId: card.id, reference }, 'refund');
    if (known !== undefined) return known.parent_id === payment.id ? known : 'status';
    if (payment.kind !== 'purchase' || payment.status !== 'posted') return 'status';
    const left = BigInt(payment.cents) - refundedOf(parts, payment);
    const cents = asked ?? left;
    if (cents === 0n || cents > left) return 'amount';
    const taken = give(parts, { card, chain, cents });
    return insert(parts, {
      ...{ cardId: card.id, kind: 'refund', parentId: payment.id, cents, reference },
      ...{ merchant: payment.merchant, taken },
    });
  });
}

function refundedOf({ store }: CardParts, { id }: PaymentRow): bigint {
  const rows = store.all<{ cents: string }>('select cents from issuer_payments where parent_id = ?', id);
  return rows.reduce((sum, { cents }) => sum + BigInt(cents), 0n);
}

interface Settling {
  readonly payment: PaymentRow;
  readonly card: CardRow;
  readonly chain: Simulated;
}

async function settle(
  parts: CardParts,
  id: string,
  work: (settling: Settling) => PaymentRow | PaymentFault,
): Promise<TestPayment | PaymentFault | undefined> {
  await expireDue(parts);
  return settleNow(parts, id, work);
}

async function settleNow(
  parts: CardParts,
  id: string,
  work: (settling: Settling) => PaymentRow | PaymentFault,
): Promise<TestPayment | PaymentFault | undefined> {
  const found = findPayment(parts, id);
  const card = found && findCard(parts, found.card_id);
  const chain = card && (await parts.chain(card.caip2));
  if (card === undefined || chain === undefined) return undefined;
  return parts.store.atomically(() => {
    // Read the payment again, because a concurrent call may have settled it.
    const done = work({ payment: findPayment(parts, id)!, card, chain });
    return typeof done === 'string' ? done : viewOf(done);
  });
}

/** Returns the money of payments that were not captured in time. Every call to the issuer runs this first. */
async function expireDue(parts: CardParts): Promise<void> {
  const due = parts.store.all<{ id: string }>(
    'select id from issuer_payments where environment = ? and expires_ms <= ? order by expires_ms limit ?',
    ...[parts.environment, parts.clock.now(), BATCH],
  );
  for (const { id } of due) {
    await settleNow(parts, id, ({ payment, card, chain }) => {
      if (payment.status !== 'pending') return payment;
      const moved = give(parts, { card, chain, cents: BigInt(payment.cents) });
      parts.store.run(
        "update issuer_payments set status = 'expired', expires_ms = null, hash = coalesce(?, hash) where id = ?",
        ...[moved?.hash ?? null, payment.id],
      );
      return findPayment(parts, payment.id)!;
    });
  }
  if (due.length === BATCH) await expireDue(parts);
}

interface Movement {
  readonly card: CardRow;
  readonly chain: Simulated;
  readonly cents: bigint;
}

/** Takes money from the wallet with `transferFrom`. The issuer is the approved spender. */
function take(
  { store, environment }: CardParts,
  { card, chain, cents }: Movement,
): { readonly hash: string } | Shortfall {
  const issuer = issuerAddress(environment);
  return pay(store, chain, {
    ...{ address: issuer, payer: card.address, spender: issuer },
    ...{ tokenAddress: card.token, decimals: card.decimals, rawAmount: rawOf(card, cents) },
  });
}

/** Pays money back to the wallet. For an amount of zero, does nothing and returns undefined. */
function give(
  { store, environment }: CardParts,
  { card, chain, cents }: Movement,
): { readonly hash: string } | undefined {
  if (cents === 0n) return undefined;
  const paid = pay(store, chain, {
    ...{ address: card.address, payer: issuerAddress(environment) },
    ...{ tokenAddress: card.token, decimals: card.decimals, rawAmount: rawOf(card, cents) },
  });
  // INVARIANT: the issuer still has all the money that it took.
  if (typeof paid === 'string') throw new Error(`the simulated issuer cannot pay back: ${paid}`);
  return paid;
}

function rawOf({ decimals }: CardRow, cents: bigint): bigint {
  return cents * 10n ** BigInt(decimals - CENT_DECIMALS);
}

interface NewPayment {
  readonly cardId: string;
  readonly kind: CardPayment['kind'];
  readonly parentId?: string;
  readonly cents: bigint;
  readonly merchant: string | null;
  readonly reference: string;
  /** The transfer, or the reason why there was none. */
  readonly taken: { readonly hash: string } | DeclineReason | undefined;
}

function insert(parts: CardParts, payment: NewPayment): PaymentRow {
  const { store, environment, ids, clock } = parts;
  const { cardId, kind, parentId = null, cents, merchant, reference, taken } = payment;
  const [id, nowMs] = [ids.uuid(), clock.now()];
  const isDeclined = typeof taken === 'string';
  const status = isDeclined ? 'declined' : kind === 'refund' ? 'posted' : 'pending';
  store.run(
    `insert into issuer_payments (environment, id, card_id, kind, parent_id, reference, status, cents, merchant, reason,
       created_ms, posted_ms, expires_ms, hash) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ...[environment, id, cardId, kind, parentId, reference, status, String(cents), merchant],
    ...[isDeclined ? taken : null, nowMs, status === 'posted' ? nowMs : null],
    ...[status === 'pending' ? nowMs + EXPIRES_MS : null, isDeclined ? null : (taken?.hash ?? null)],
  );
  return findPayment(parts, id)!;
}

function findPayment({ store, environment }: CardParts, id: string): PaymentRow | undefined {
  return store.first('select * from issuer_payments where environment = ? and id = ?', environment, id);
}

function findByReference(
  { store, environment }: CardParts,
  { cardId, reference }: { readonly cardId: string; readonly reference: string },
  kind: CardPayment['kind'],
): PaymentRow | undefined {
  return store.first(
    'select * from issuer_payments where environment = ? and card_id = ? and kind = ? and reference = ?',
    ...[environment, cardId, kind, reference],
  );
}

/** Returns the payments of a card, newest first, or undefined for an unknown cursor. */
export async function paymentsOf(
  parts: CardParts,
  cardId: string,
  { cursor, limit }: { readonly cursor: string | undefined; readonly limit: number },
): Promise<PaymentPage | undefined> {
  if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) return undefined;
  await expireDue(parts);
  const rows = parts.store.all<PaymentRow>(
    `select * from issuer_payments where environment = ? and card_id = ? and position < ?
     order by position desc limit ?`,
    ...[
      parts.environment,
      cardId,
      cursor === undefined ? Number.MAX_SAFE_INTEGER : Number(cursor),
      limit + 1,
    ],
  );
  const page = rows.slice(0, limit);
  const isLast = rows.length <= limit;
  return { payments: page.map(viewOf), nextCursor: isLast ? null : String(page.at(-1)!.position) };
}

/** Returns the payments that were posted within a period, oldest first. */
export async function postedOf(
  parts: CardParts,
  cardId: string,
  { fromMs, beforeMs, limit }: PostedQuery,
): Promise<readonly CardPayment[]> {
  await expireDue(parts);
  const rows = parts.store.all<PaymentRow>(
    `select * from issuer_payments where environment = ? and card_id = ? and posted_ms >= ? and posted_ms < ?
     order by posted_ms, position limit ?`,
    ...[parts.environment, cardId, fromMs, beforeMs, limit],
  );
  return rows.map(viewOf);
}

function viewOf(row: PaymentRow): TestPayment {
  return {
    id: row.id,
    cardId: row.card_id,
    kind: row.kind,
    status: row.status,
    cents: BigInt(row.cents),
    currency: CURRENCY,
    merchant: row.merchant,
    createdAtMs: row.created_ms,
    postedAtMs: row.posted_ms,
    declineReason: row.reason,
    hash: row.hash,
  };
}
