import type { FiatDepositPage, FiatDepositReport, FiatDepositState } from '../../../ports/fiat.ts';
import { book } from './books.ts';
import { railsOf } from './instructions.ts';
import { assetWorth, type Currency, centsOf, developerFeeOf, feeOf, textOf } from './money.ts';
import { type FiatParts, STEP_MS } from './parts.ts';
import { type Treasury, treasuryFor, tryToPay } from './treasury.ts';
import { findVirtualAccount, type VirtualAccountRow } from './virtual-accounts.ts';

/** The outcome of a deposit: it is delivered, refunded, or in review until a tester decides. */
type DepositOutcome = 'completed' | 'in_review' | 'refunded';

/** Money that arrives at the simulated bank. */
export interface BankDeposit {
  readonly accountId: string;
  /** A decimal number, in units of the account's currency. */
  readonly amount: string;
  readonly rail?: string | undefined;
  readonly senderName?: string | undefined;
  /** Payments with the same reference are one deposit. */
  readonly reference: string;
  readonly outcome: DepositOutcome;
}

interface DepositRow {
  readonly id: string;
  readonly account_id: string;
  readonly currency: Currency;
  readonly amount: string;
  readonly rail: string;
  readonly sender: string | null;
  readonly outcome: DepositOutcome;
  readonly state: FiatDepositState;
}

const PAGE = 100;
const BATCH = 50;

/** Processes everything that is due, then returns one page of the reports on deposits. */
export async function depositsAfter(parts: FiatParts, cursor: string | undefined): Promise<FiatDepositPage> {
  await settleDue(parts);
  const { store, environment } = parts;
  const rows = store.all<
    DepositRow & {
      position: number;
      deposit_id: string;
      reported: FiatDepositState;
      at_ms: number;
      hash: string | null;
      raw_output: string | null;
      reason: string | null;
      reason_code: string | null;
    }
  >(
    `select reports.position, reports.deposit_id, reports.state as reported, reports.at_ms, reports.hash,
       reports.raw_output, deposits.*
     from fiat_deposit_reports as reports join fiat_deposits as deposits
       on deposits.environment = reports.environment and deposits.id = reports.deposit_id
     where reports.environment = ? and reports.position > ? order by reports.position limit ?`,
    ...[environment, Number(cursor ?? 0), PAGE],
  );
  const reports = rows.map(
    (row): FiatDepositReport => ({
      ...{ depositId: row.deposit_id, virtualAccountId: row.account_id, state: row.reported },
      ...{ amount: row.amount, currency: row.currency, paymentRail: row.rail, atMs: row.at_ms },
      senderName: row.sender ?? undefined,
      transactionHash: row.hash ?? undefined,
      rawOutput: row.raw_output === null ? undefined : BigInt(row.raw_output),
      ...(row.reported === 'refunded'
        ? { reason: row.reason ?? undefined, reasonCode: row.reason_code ?? undefined }
        : {}),
    }),
  );
  const last = rows.at(-1);
  return {
    reports,
    cursor: last === undefined ? cursor : String(last.position),
    hasMore: rows.length === PAGE,
  };
}

/** Records an incoming payment. Returns undefined for an unknown account, and `amount` for an invalid amount. */
export function receive(parts: FiatParts, deposit: BankDeposit): { id: string } | 'amount' | undefined {
  const { store, environment, ids, clock } = parts;
  const account = findVirtualAccount(parts, deposit.accountId);
  if (account === undefined) return undefined;
  const cents = centsOf(deposit.amount);
  if (cents === undefined || cents === 0n) return 'amount';
  return store.atomically(() => {
    const known = store.first<{ id: string }>(
      'select id from fiat_deposits where environment = ? and account_id = ? and reference = ?',
      ...[environment, account.id, deposit.reference],
    );
    if (known !== undefined) return { id: known.id };
    const id = ids.uuid();
    const { currency } = account;
    const outcome = account.status === 'activated' ? deposit.outcome : 'refunded';
    store.run(
      "insert into fiat_deposits values (?, ?, ?, ?, ?, ?, ?, ?, ?, 'received', ?, ?, ?)",
      ...[environment, id, account.id, deposit.reference, currency, textOf(cents)],
      ...[deposit.rail ?? railsOf(currency)[0]!, deposit.senderName ?? null, outcome, clock.now() + STEP_MS],
      ...(outcome === deposit.outcome
        ? [null, null]
        : ['account_deactivated', 'the deposit account is deactivated']),
    );
    book(store, 'paid_in', { environment, currency, cents });
    report(parts, { id, state: 'received' });
    return { id };
  });
}

/**
 * Delivers or refunds a deposit, as a tester decides. Returns false unless a deposit with this id has been received or
 * is in review.
 */
export function decideDeposit(parts: FiatParts, id: string, outcome: 'completed' | 'refunded'): boolean {
  const { store, environment, clock } = parts;
  return store.atomically(() => {
    const held = store.first(
      "select 1 from fiat_deposits where environment = ? and id = ? and state in ('received', 'in_review')",
      ...[environment, id],
    );
    if (held === undefined) return false;
    store.run(
      'update fiat_deposits set outcome = ?, due_ms = ? where environment = ? and id = ?',
      ...[outcome, clock.now(), environment, id],
    );
    return true;
  });
}

async function settleDue(parts: FiatParts): Promise<void> {
  const { store, environment, clock } = parts;
  const due = store.all<DepositRow>(
    'select * from fiat_deposits where environment = ? and due_ms <= ? order by due_ms limit ?',
    ...[environment, clock.now(), BATCH],
  );
  for (const { id, account_id: accountId } of due) {
    const account = findVirtualAccount(parts, accountId)!;
    const treasury = await treasuryFor(parts, {
      ...account,
      tokenAddress: account.token,
      chain: account.caip2,
    });
    store.atomically(() => settle(parts, { id, account, treasury }));
  }
}

function settle(
  parts: FiatParts,
  { id, account, treasury }: { id: string; account: VirtualAccountRow; treasury: Treasury | undefined },
): void {
  const { store, environment, clock } = parts;
  // Read the deposit again, because a concurrent call may have settled it.
  const row = store.first<DepositRow>(
    'select * from fiat_deposits where environment = ? and id = ? and due_ms <= ?',
    ...[environment, id, clock.now()],
  );
  if (row === undefined) return;
  if (row.outcome === 'in_review') advance(parts, { id, state: 'in_review' });
  else if (row.outcome === 'refunded') refund(parts, row);
  else deliver(parts, row, { account, treasury });
}

function deliver(
  parts: FiatParts,
  row: DepositRow,
  { account, treasury }: { account: VirtualAccountRow; treasury: Treasury | undefined },
): void {
  const { store, environment } = parts;
  const { id, currency } = row;
  const cents = centsOf(row.amount)!;
  const fee = feeOf(cents);
  const developerFee = developerFeeOf(cents, account.developer_fee_percent);
  const paid = treasury && pay(parts, { account, treasury, cents: cents - fee - developerFee });
  if (paid === undefined) {
    refund(parts, row, ['not_deliverable', 'the deposit could not be delivered']);
    return;
  }
  book(store, 'fees', { environment, currency, cents: fee });
  book(store, 'developer_fees', { environment, currency, cents: developerFee });
  report(parts, { id, state: 'delivering' });
  advance(parts, { id, state: 'delivered', ...paid });
}

function pay(
  { store }: FiatParts,
  { account, treasury, cents }: { account: VirtualAccountRow; treasury: Treasury; cents: bigint },
): { hash: string; rawOutput: bigint } | undefined {
  const { currency, decimals, address, token: tokenAddress } = account;
  // The fees may be higher than the deposit.
  if (cents <= 0n) return undefined;
  treasury.stock();
  const rawOutput = assetWorth(cents, currency, { price: treasury.price, decimals });
  if (rawOutput === 0n) return undefined;
  const paid = tryToPay(store, treasury.chain, {
    ...{ address, payer: treasury.address, tokenAddress, decimals, rawAmount: rawOutput },
  });
  return paid && { hash: paid.hash, rawOutput };
}

function refund(parts: FiatParts, row: DepositRow, cause?: readonly [code: string, text: string]): void {
  const { store, environment } = parts;
  const { id, currency } = row;
  const [code, reason] = cause ?? ['refunded_by_bank', 'the bank returned the deposit'];
  store.run(
    `update fiat_deposits set reason_code = coalesce(reason_code, ?), reason = coalesce(reason, ?)
     where environment = ? and id = ?`,
    ...[code, reason, environment, id],
  );
  book(store, 'refunded', { environment, currency, cents: centsOf(row.amount)! });
  advance(parts, { id, state: 'refunded' });
}

interface Progress {
  readonly id: string;
  readonly state: FiatDepositState;
  readonly hash?: string;
  readonly rawOutput?: bigint;
}

/** Moves a deposit to its final state, or to the state that only a tester can end. */
function advance(parts: FiatParts, progress: Progress): void {
  const { store, environment } = parts;
  store.run(
    'update fiat_deposits set state = ?, due_ms = null where environment = ? and id = ?',
    ...[progress.state, environment, progress.id],
  );
  report(parts, progress);
}

function report({ store, environment, clock }: FiatParts, { id, state, hash, rawOutput }: Progress): void {
  store.run(
    `insert into fiat_deposit_reports (environment, deposit_id, state, at_ms, hash, raw_output)
     values (?, ?, ?, ?, ?, ?)`,
    ...[
      environment,
      id,
      state,
      clock.now(),
      hash ?? null,
      rawOutput === undefined ? null : String(rawOutput),
    ],
  );
}
