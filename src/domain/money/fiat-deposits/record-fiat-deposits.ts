import type { SqlEntityManager } from '@mikro-orm/sql';
import type { FiatDepositPage, FiatDepositReport, FiatEnvironment, FiatPlace } from '../../../ports/fiat.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { recordEvent } from '../../base/events/events.ts';
import type { Tables } from '../../tables.ts';
import {
  FiatDepositAccountEntity,
  FiatDepositEntity,
  FiatPositionEntity,
  type StoredDeposit,
  type StoredFiatDepositAccount,
} from './fiat-deposit.entity.ts';

type EventContext = Pick<OperationContext, 'em' | 'ids' | 'notes' | 'nowMs'>;

function recordDepositStarted(
  context: EventContext,
  account: StoredFiatDepositAccount,
  deposit: StoredDeposit,
): Promise<string> {
  return recordEvent(context, {
    appId: account.appId,
    type: 'wallet.deposit_account.deposit_started',
    payload: { ...headOf(account, deposit), data: dataOf(account, deposit) },
  });
}

/**
 * Records that a deposit arrived in the wallet.
 *
 * @param amount in units of the asset.
 */
export function recordDepositCompleted(
  context: EventContext,
  { account, deposit, amount }: { account: StoredFiatDepositAccount; deposit: StoredDeposit; amount: string },
): Promise<string> {
  const data = dataOf(account, deposit);
  return recordEvent(context, {
    appId: account.appId,
    type: 'wallet.deposit_account.deposit_completed',
    payload: {
      ...headOf(account, deposit),
      data: {
        ...data,
        destination: { ...data.destination, amount, transaction_hash: deposit.transactionHash },
      },
    },
  });
}

function recordDepositFailed(
  context: EventContext,
  {
    account,
    deposit,
    report,
  }: { account: StoredFiatDepositAccount; deposit: StoredDeposit; report: FiatDepositReport },
): Promise<string> {
  return recordEvent(context, {
    appId: account.appId,
    type: 'wallet.deposit_account.deposit_failed',
    payload: {
      ...headOf(account, deposit),
      data: {
        ...dataOf(account, deposit),
        reason: report.reason ?? 'The provider returned the deposit.',
        reason_code: report.reasonCode ?? 'refunded',
        refunded_at: new Date(report.atMs).toISOString(),
      },
    },
  });
}

function headOf(account: StoredFiatDepositAccount, deposit: StoredDeposit) {
  return {
    wallet_id: account.walletId,
    deposit_account_id: account.id,
    deposit_type: 'fiat',
    provider: account.provider,
    environment: account.environment,
    provider_deposit_id: deposit.providerDepositId,
  };
}

function dataOf(account: StoredFiatDepositAccount, deposit: StoredDeposit) {
  const { amount, currency, paymentRail, senderName } = deposit;
  return {
    created_at: new Date(deposit.createdAtMs).toISOString(),
    source: {
      ...{ amount, currency },
      ...(paymentRail === null ? {} : { payment_rail: paymentRail }),
      ...(senderName === null ? {} : { sender_name: senderName }),
    },
    destination: { asset: account.asset, chain: account.chain },
  };
}

// KYSELY: inserts a row unless another process has inserted it.

type RecordContext = Pick<OperationContext, 'em' | 'ids' | 'notes' | 'nowMs'>;

const BEGINNING = '';

/** A provider's history of deposits, with the position up to which it was read. Undefined means the beginning. */
export interface FiatPosition extends FiatPlace {
  readonly after: string | undefined;
}

/** A page of a provider's history, and the position from which it was read. */
interface ReadDeposits extends FiatPosition {
  readonly page: FiatDepositPage;
}

/** Lists the providers whose deposits are followed, each with the position to read from. */
export async function listFiatPositions(em: RecordContext['em']): Promise<readonly FiatPosition[]> {
  const order = { provider: 'asc', environment: 'asc' } as const;
  const rows = await em.find(FiatPositionEntity, {}, { orderBy: order, disableIdentityMap: true });
  return rows.map(({ provider, environment, position }) => ({
    provider,
    environment: environment as FiatEnvironment,
    after: position === BEGINNING ? undefined : position,
  }));
}

/** Starts to follow the deposits of a provider, if they are not followed yet. */
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
 * Stores the reports of a provider about deposits, records their events, and moves the position in the provider's
 * history, all in one transaction. Does nothing when another process has moved the position in the meantime.
 *
 * INVARIANT: a deposit only moves forward, in whatever order and however many times its reports arrive. Each of its
 * events is recorded once.
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
  // The deposit belongs to another server that uses the same account at the provider.
  if (account === null) return;
  const key = { provider, environment, providerDepositId: report.depositId };
  const known = await em.findOne(FiatDepositEntity, key, lockForUpdate);
  const deposit = known ?? (await beginDeposit(context, account, report));
  await advance(context, { account, deposit, report });
  await em.flush();
}

/** Records that a deposit was received, even if the provider first reports a later state. */
async function beginDeposit(
  context: RecordContext,
  account: StoredFiatDepositAccount,
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

/** The order of the states before a deposit ends. `completed` and `failed` are end states, so they are not listed. */
const ranks: Readonly<Record<string, number>> = { received: 0, in_review: 1, delivering: 2, delivered: 3 };

async function advance(
  context: RecordContext,
  {
    account,
    deposit,
    report,
  }: { account: StoredFiatDepositAccount; deposit: StoredDeposit; report: FiatDepositReport },
): Promise<void> {
  const rank = ranks[deposit.state];
  if (rank === undefined) return;
  if (report.state === 'refunded') {
    deposit.state = 'failed';
    deposit.nextCheckAtMs = null;
    await recordDepositFailed(context, { account, deposit, report });
    return;
  }
  // Without a transaction hash, the deposit still counts as `delivering`. A later report will have the hash.
  const isSent = report.state !== 'delivered' || report.transactionHash !== undefined;
  const state = isSent ? report.state : 'delivering';
  if (ranks[state]! <= rank) return;
  deposit.state = state;
  if (state !== 'delivered') return;
  // The deposit is completed once a configured chain has the transaction in a block.
  deposit.transactionHash = report.transactionHash ?? null;
  deposit.rawOutput = report.rawOutput === undefined ? null : String(report.rawOutput);
  deposit.nextCheckAtMs = context.nowMs;
}

/** A stored deposit, for the sandbox's control plane. */
interface FoundDeposit {
  readonly accountId: string;
  readonly environment: FiatEnvironment;
  readonly state: string;
}

/** Returns the deposit that has this id at its provider, in any app; undefined for an unknown id. */
export async function getFiatDeposit(
  em: SqlEntityManager,
  providerDepositId: string,
): Promise<FoundDeposit | undefined> {
  const found = await em.findOne(FiatDepositEntity, { providerDepositId });
  if (found === null) return undefined;
  return {
    accountId: found.accountId,
    environment: found.environment as FiatEnvironment,
    state: found.state,
  };
}

/** Returns the provider's id of a deposit account, in any app; undefined for an unknown account. */
export async function getVirtualAccount(
  em: SqlEntityManager,
  accountId: string,
): Promise<{ readonly virtualAccountId: string; readonly environment: FiatEnvironment } | undefined> {
  const found = await em.findOne(FiatDepositAccountEntity, { id: accountId });
  if (found === null) return undefined;
  return { virtualAccountId: found.virtualAccountId, environment: found.environment as FiatEnvironment };
}
