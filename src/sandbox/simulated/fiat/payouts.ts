import type {
  FiatPayout,
  FiatPayoutState,
  FiatProvider,
  FiatRefusal,
  OpenedPayout,
  PayoutOrder,
} from '../../../ports/fiat.ts';
import type { Simulated } from '../chains/world.ts';
import { toLedger } from '../exchange/solver.ts';
import { findBankAccount } from './bank-accounts.ts';
import { book } from './books.ts';
import { type Currency, centsOf, centsWorth, developerFeeOf, isCurrency, textOf } from './money.ts';
import { type FiatParts, refuse, STEP_MS } from './parts.ts';
import { bankAddress, tryToPay } from './treasury.ts';

/** CHOICE: how soon the deposit must be included. A later deposit is refunded. */
const PAYOUT_SECONDS = 600;
/** CHOICE: the minimum payout after the app's fee, in cents of the currency. */
const MIN_CENTS = 100n;

/** The outcome of a payout once its deposit has arrived. */
export type PayoutOutcome = 'processed' | 'in_review' | 'returned' | 'undeliverable' | 'error';

interface PayoutRow {
  readonly id: string;
  readonly caip2: string;
  readonly token: string | null;
  readonly payer: string;
  readonly raw_amount: string;
  readonly address: string;
  readonly currency: Currency;
  /** The amount after the app's fee is deducted. */
  readonly amount: string;
  readonly developer_fee: string;
  readonly expires_seconds: number;
  readonly outcome: PayoutOutcome;
  readonly state: FiatPayoutState;
  readonly due_ms: number | null;
  readonly deposit_hash: string | null;
  readonly refund_hash: string | null;
  readonly reason: string | null;
}

/** Special endings of bank account numbers, which select an outcome. */
const sentinels: Readonly<Record<string, PayoutOutcome>> = {
  '0001': 'in_review',
  '0003': 'returned',
  '0004': 'undeliverable',
};

/**
 * Simulates the bank's payouts. Each has its own deposit address, where the money stays or from where it is refunded.
 * `payout` looks for deposits and runs due steps, in one transaction with the chains.
 */
export function simulatePayouts(
  parts: FiatParts,
): Pick<FiatProvider, 'openPayout' | 'cancelPayout' | 'payout'> {
  const { store, environment } = parts;
  return {
    openPayout: (order) => open(parts, order),
    cancelPayout: async (id) =>
      store.run(
        `update fiat_payouts set state = 'canceled', due_ms = null
         where environment = ? and id = ? and state = 'awaiting_funds'`,
        ...[environment, id],
      ),
    async payout(id) {
      const known = findPayout(parts, id);
      if (known === undefined) return undefined;
      const chain = await parts.chain(known.caip2);
      return store.atomically(() => {
        if (chain !== undefined) takeDeposits(parts, id, chain);
        // If the clock was moved, several steps may be due together.
        while (chain !== undefined && advance(parts, id, chain));
        return viewOf(findPayout(parts, id)!);
      });
    },
  };
}

/**
 * Sets the outcome that a tester chose for a payout. It applies immediately, or once the deposit has arrived. Returns
 * false if the payout does not exist or has already ended.
 */
export function decidePayout(
  { store, environment, clock }: FiatParts,
  id: string,
  outcome: PayoutOutcome,
): boolean {
  return store.atomically(() => {
    const open = store.first(
      `select 1 from fiat_payouts where environment = ? and id = ?
         and state in ('awaiting_funds', 'funds_received', 'in_review', 'payment_submitted')`,
      ...[environment, id],
    );
    if (open === undefined) return false;
    store.run(
      `update fiat_payouts set outcome = ?, due_ms = case state when 'awaiting_funds' then null else ? end
       where environment = ? and id = ?`,
      ...[outcome, clock.now(), environment, id],
    );
    return true;
  });
}

async function open(parts: FiatParts, order: PayoutOrder): Promise<OpenedPayout | FiatRefusal> {
  const { store, environment, ids, clock, prices } = parts;
  const { source, rawAmount, currency } = order;
  const account = findBankAccount(parts, order.bankAccountId);
  if (account === undefined || account.is_removed === 1 || account.customer_id !== order.customerId) {
    return refuse('customer', 'the customer has no such bank account');
  }
  const price = (await prices.inUsd([source.asset])).get(source.asset);
  const address = await bankAddress(source.caip2, `${environment} payout ${order.key}`);
  const chain = await parts.chain(source.caip2);
  if (!isCurrency(currency) || price === undefined || address === undefined || chain === undefined) {
    return refuse('pair', `the provider does not pay out this asset of this chain in \`${currency}\``);
  }
  const worth = centsWorth(rawAmount, currency, { price, decimals: source.decimals });
  const developerFee = developerFeeOf(worth, order.developerFeePercent);
  const cents = worth - developerFee;
  if (cents < MIN_CENTS) {
    return refuse('data', `the least to pay out is ${textOf(MIN_CENTS)} ${currency}`);
  }
  return store.atomically(() => {
    const find = 'select * from fiat_payouts where environment = ? and request_key = ?';
    const known = store.first<PayoutRow>(find, environment, order.key);
    if (known === undefined) {
      store.run(
        `insert into fiat_payouts values
           (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'awaiting_funds', null, null, null, null, ?)`,
        ...[environment, ids.uuid(), order.key, account.id, source.caip2, source.tokenAddress],
        ...[toLedger(source.caip2, source.address), String(rawAmount), address, currency, textOf(cents)],
        ...[Math.floor(clock.now() / 1000) + PAYOUT_SECONDS, sentinels[account.last_4] ?? 'processed'],
        textOf(developerFee),
      );
    }
    const row = store.first<PayoutRow>(find, environment, order.key)!;
    return {
      ...{ id: row.id, depositAddress: row.address, rawAmount: BigInt(row.raw_amount) },
      expiresAtSeconds: row.expires_seconds,
    };
  });
}

function findPayout({ store, environment }: FiatParts, id: string): PayoutRow | undefined {
  return store.first('select * from fiat_payouts where environment = ? and id = ?', environment, id);
}

interface Arrival {
  readonly hash: string;
  readonly sender: string;
  readonly asset: string;
  readonly rawAmount: bigint;
  readonly blockSeconds: number;
}

/** Accepts the first deposit with the ordered amount, and refunds all others. */
function takeDeposits(parts: FiatParts, id: string, chain: Simulated): void {
  const { store, environment, clock } = parts;
  for (const arrival of arrivalsAt(parts, findPayout(parts, id)!)) {
    const row = findPayout(parts, id)!;
    const isAsOrdered =
      row.state === 'awaiting_funds' &&
      arrival.sender === row.payer &&
      arrival.asset === toLedger(row.caip2, row.token) &&
      arrival.rawAmount === BigInt(row.raw_amount) &&
      arrival.blockSeconds <= row.expires_seconds;
    if (isAsOrdered) {
      store.run(
        `update fiat_payouts set state = 'funds_received', deposit_hash = ?, due_ms = ?
         where environment = ? and id = ?`,
        ...[arrival.hash, clock.now() + STEP_MS, environment, id],
      );
    }
    const refund = isAsOrdered ? undefined : sendBack(parts, row, { chain, arrival });
    if (!isAsOrdered && refund === undefined) continue;
    store.run(
      'insert into fiat_payout_deposits values (?, ?, ?, ?)',
      ...[row.caip2, arrival.hash, ledgerAddress(row), refund ?? null],
    );
    if (refund !== undefined) noteRefund(parts, row, { arrival, refund });
  }
}

/** Ends a payout with a refund if its own deposit came too late or had the wrong amount. */
function noteRefund(
  { store, environment }: FiatParts,
  row: PayoutRow,
  { arrival, refund }: { arrival: Arrival; refund: string },
): void {
  const waits = row.state === 'awaiting_funds' || row.state === 'canceled';
  if (!waits || arrival.sender !== row.payer) return;
  const isLate = arrival.blockSeconds > row.expires_seconds;
  store.run(
    `update fiat_payouts set state = 'refunded', deposit_hash = ?, refund_hash = ?, reason = ?
     where environment = ? and id = ?`,
    ...[arrival.hash, refund],
    ...[isLate ? 'the deposit was included after the payout had expired' : 'the deposit is not as ordered'],
    ...[environment, row.id],
  );
}

function arrivalsAt({ store }: FiatParts, row: PayoutRow): readonly Arrival[] {
  const address = ledgerAddress(row);
  const rows = store.all<{
    hash: string;
    sender: string;
    asset: string;
    amount: string;
    block_seconds: number;
  }>(
    `select hash, sender, asset, amount, block_seconds from transfers
     where caip2 = ? and recipient = ? and not exists (
       select 1 from fiat_payout_deposits as seen
       where seen.caip2 = transfers.caip2 and seen.hash = transfers.hash and seen.address = transfers.recipient)
     order by position limit 100`,
    ...[row.caip2, address],
  );
  // All transfers within one transaction are one deposit.
  const byHash = Map.groupBy(rows, ({ hash }) => hash);
  return [...byHash.values()].map((group) => {
    const { hash, sender, asset, block_seconds: blockSeconds } = group[0]!;
    const same = group.filter((one) => one.sender === sender && one.asset === asset);
    const rawAmount = same.reduce((sum, { amount }) => sum + BigInt(amount), 0n);
    return { hash, sender, asset, rawAmount, blockSeconds };
  });
}

function sendBack(
  { store }: FiatParts,
  row: PayoutRow,
  { chain, arrival }: { chain: Simulated; arrival: Pick<Arrival, 'sender' | 'asset' | 'rawAmount'> },
): string | undefined {
  const { sender: address, asset, rawAmount } = arrival;
  const tokenAddress = asset === '' ? null : asset;
  return tryToPay(store, chain, { address, payer: ledgerAddress(row), tokenAddress, rawAmount })?.hash;
}

/** Runs the next due step of a payout whose deposit has arrived. Returns false if none is due. */
function advance(parts: FiatParts, id: string, chain: Simulated): boolean {
  const { store, environment, clock } = parts;
  const row = findPayout(parts, id)!;
  if (row.due_ms === null || row.due_ms > clock.now()) return false;
  const next = nextOf(row);
  store.run(
    'update fiat_payouts set state = ?, due_ms = ?, reason = ? where environment = ? and id = ?',
    ...[next.state, next.isEnd ? null : row.due_ms + STEP_MS, next.reason ?? row.reason, environment, id],
  );
  if (next.state === 'payment_processed') {
    const { currency, amount, developer_fee: fee } = row;
    book(store, 'paid_out', { environment, currency, cents: centsOf(amount)! });
    book(store, 'developer_fees', { environment, currency, cents: centsOf(fee)! });
  }
  if (next.state === 'refunded' || next.state === 'error') refund(parts, row, chain);
  return true;
}

function nextOf({ state, outcome }: PayoutRow): { state: FiatPayoutState; isEnd: boolean; reason?: string } {
  if (outcome === 'in_review') return { state: 'in_review', isEnd: true };
  if (state === 'returned' || state === 'undeliverable') return { state: 'refunded', isEnd: true };
  if (outcome === 'error') return { state: 'error', isEnd: true, reason: 'the provider could not pay' };
  if (state === 'funds_received' || state === 'in_review')
    return { state: 'payment_submitted', isEnd: false };
  if (outcome === 'returned')
    return { state: 'returned', isEnd: false, reason: 'the bank returned the payment' };
  if (outcome === 'undeliverable') {
    return { state: 'undeliverable', isEnd: false, reason: 'the payment could not be delivered to the bank' };
  }
  return { state: 'payment_processed', isEnd: true };
}

function refund(parts: FiatParts, row: PayoutRow, chain: Simulated): void {
  const { store, environment } = parts;
  const arrival = {
    ...{ sender: row.payer, asset: toLedger(row.caip2, row.token) },
    rawAmount: BigInt(row.raw_amount),
  };
  const hash = sendBack(parts, row, { chain, arrival });
  if (hash === undefined) throw new Error('the deposit address of a payout holds too little for its refund');
  store.run(
    'update fiat_payouts set refund_hash = ? where environment = ? and id = ?',
    hash,
    environment,
    row.id,
  );
}

function ledgerAddress({ caip2, address }: PayoutRow): string {
  return toLedger(caip2, address);
}

function viewOf(row: PayoutRow): FiatPayout {
  return {
    id: row.id,
    state: row.state,
    depositHash: row.deposit_hash ?? undefined,
    paidAmount: row.state === 'payment_processed' ? row.amount : undefined,
    refund: row.refund_hash === null ? undefined : { caip2: row.caip2, transactionHash: row.refund_hash },
    reason: row.reason ?? undefined,
  };
}
