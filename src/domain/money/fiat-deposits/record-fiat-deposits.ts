import type { OperationContext } from '../../../operation-context.ts';
import type {
  FiatDepositPage,
  FiatDepositReport,
  FiatEnvironment,
  FiatPlace,
} from '../../../ports/fiat-providers.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';
import { recordDepositFailed, recordDepositStarted } from './deposit-events.ts';
import { FiatDepositEntity, type StoredDeposit } from './fiat-deposit.entity.ts';
import { FiatDepositAccountEntity, type StoredDepositAccount } from './fiat-deposit-account.entity.ts';
import { FiatPositionEntity } from './fiat-position.entity.ts';

// HOT: jobs of several processes read the same history. No bench case covers it.

type RecordContext = Pick<OperationContext, 'em' | 'ids' | 'nowMs'>;

const BEGINNING = '';

/** A position in a provider's history; undefined is the beginning. */
export interface FiatPosition extends FiatPlace {
  readonly after: string | undefined;
}

/** A page of a provider's history, with the position that it was read from. */
export interface ReadDeposits extends FiatPosition {
  readonly page: FiatDepositPage;
}

// HOT: runs every second; a prepared statement takes a tenth of the CPU (idle sandbox).
const selectPositions = prepareQuery<
  Record<never, never>,
  { provider: string; environment: string; position: string }
>((database) =>
  database
    .selectFrom('fiat_positions')
    .select(['provider', 'environment', 'position'])
    .orderBy('provider')
    .orderBy('environment'),
);

/** The providers whose deposits are read, each with the position to read from. */
export async function listFiatPositions(em: RecordContext['em']): Promise<readonly FiatPosition[]> {
  const { rows } = await selectPositions(em, {});
  return rows.map(({ provider, environment, position }) => ({
    provider,
    environment: environment as FiatEnvironment,
    after: position === BEGINNING ? undefined : position,
  }));
}

/** Begins to read the deposits of a provider, unless they are read already. */
export async function beginFiatPosition(em: RecordContext['em'], place: FiatPlace): Promise<void> {
  const { provider, environment } = place;
  await em
    .getKysely<Tables>()
    .insertInto('fiat_positions')
    .values({ provider, environment, position: BEGINNING })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/**
 * Stores what a provider reports about deposits, records their events, and moves the position in its history, all in
 * one transaction. Does nothing when another process has moved the position since it was read.
 *
 * INVARIANT: a deposit only moves forward, in whatever order its reports arrive and however often: each of its events
 * is recorded once.
 */
export async function recordFiatDeposits(context: RecordContext, read: ReadDeposits): Promise<void> {
  if (!(await movePosition(context.em, read))) return;
  for (const report of read.page.reports) await recordReport(context, read, report);
}

async function movePosition(
  em: RecordContext['em'],
  { after, page, ...place }: ReadDeposits,
): Promise<boolean> {
  const { provider, environment } = place;
  const stored = await em.findOne(FiatPositionEntity, { provider, environment }, lockForUpdate);
  if (stored?.position !== (after ?? BEGINNING) || page.cursor === undefined) return false;
  stored.position = page.cursor;
  await em.flush();
  return true;
}

async function recordReport(
  context: RecordContext,
  { provider, environment }: FiatPlace,
  report: FiatDepositReport,
): Promise<void> {
  const { em } = context;
  const account = await em.findOne(FiatDepositAccountEntity, {
    provider,
    environment,
    virtualAccountId: report.virtualAccountId,
  });
  // Another server may use the same account at the provider.
  if (account === null) return;
  const key = { provider, environment, providerDepositId: report.depositId };
  const known = await em.findOne(FiatDepositEntity, key, lockForUpdate);
  const deposit = known ?? (await beginDeposit(context, account, report));
  await advance(context, { account, deposit, report });
  await em.flush();
}

/** A deposit is received before anything else happens to it, even if that is reported first. */
async function beginDeposit(
  context: RecordContext,
  account: StoredDepositAccount,
  report: FiatDepositReport,
): Promise<StoredDeposit> {
  const deposit = context.em.create(FiatDepositEntity, {
    id: context.ids.cuid(),
    accountId: account.id,
    provider: account.provider,
    environment: account.environment,
    providerDepositId: report.depositId,
    state: 'received',
    amount: report.amount,
    currency: report.currency,
    paymentRail: report.paymentRail ?? null,
    senderName: report.senderName ?? null,
    transactionHash: null,
    rawOutput: null,
    createdAtMs: context.nowMs,
    nextCheckAtMs: null,
  });
  await context.em.flush();
  await recordDepositStarted(context, account, deposit);
  return deposit;
}

/** The order of the states before the end; `completed` and `failed` are the end. */
const ranks: Readonly<Record<string, number>> = { received: 0, in_review: 1, delivering: 2, delivered: 3 };

async function advance(
  context: RecordContext,
  {
    account,
    deposit,
    report,
  }: { account: StoredDepositAccount; deposit: StoredDeposit; report: FiatDepositReport },
): Promise<void> {
  const rank = ranks[deposit.state];
  if (rank === undefined) return;
  if (report.state === 'refunded') {
    deposit.state = 'failed';
    deposit.nextCheckAtMs = null;
    await recordDepositFailed(context, { account, deposit, report });
    return;
  }
  // Without its transaction it is still on its way: a later report brings the hash.
  const isSent = report.state !== 'delivered' || report.transactionHash !== undefined;
  const state = isSent ? report.state : 'delivering';
  if (ranks[state]! <= rank) return;
  deposit.state = state;
  if (state !== 'delivered') return;
  // Completed when our chain has the transaction in a block.
  deposit.transactionHash = report.transactionHash ?? null;
  deposit.rawOutput = report.rawOutput === undefined ? null : String(report.rawOutput);
  deposit.nextCheckAtMs = context.nowMs;
}
