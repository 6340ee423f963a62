import {
  claimDueTransactions,
  type DueTransaction,
} from '../domain/money/transactions/claim-transactions.ts';
import {
  advanceTransaction,
  type Finding,
  followTransaction,
  recordStillPending,
  unchanged,
} from '../domain/money/transactions/follow-transaction.ts';
import { findFinalSibling, readDoubt } from '../domain/money/transactions/reorgs-and-replacements.ts';
import type { TransactionRow, TransactionStatus } from '../domain/money/transactions/transaction.entity.ts';
import { WOKEN_IDLE_MS } from './find-due-work.ts';
import { fewAtOnce, type JobContext, jobApart, outagesIn } from './job-context.ts';
import type { Job } from './runner.ts';

const EVERY_MS = 1000;
const BATCH = 20;
/** The maximum number of concurrent units of work, however many chains respond at the same moment. */
const UNITS_AT_ONCE = 4;

/**
 * Creates the job that follows transactions until they are final. It broadcasts a transaction again when its chain does
 * not have it, in particular a transaction that was signed just before a crash. Chains are called between transactions,
 * independently of one another. A transaction that waits for another one is followed after it, with its status.
 */
export function followTransactions({ services, inUnit: openUnit }: JobContext): Job {
  const inUnit = fewAtOnce(openUnit, UNITS_AT_ONCE);
  const report = outagesIn(services.log, 'transactions could not be followed; they are tried again');
  const writeDown = (row: TransactionRow, nowMs: number, finding: Finding): Promise<void> =>
    inUnit(async (em, notes) => {
      const { chains, ids, prices } = services;
      const context = { chains, ids, prices, em, notes, nowMs };
      const byHash = finding.doubt?.as === 'replaced' ? await findFinalSibling(em, row) : undefined;
      const proven: Finding =
        byHash === undefined
          ? finding
          : { status: 'replaced', reason: `replaced by ${byHash}`, isSettled: true };
      const wasWritten = await advanceTransaction(context, row, proven);
      if (wasWritten) await recordStillPending(context, row, proven);
    });

  /** Checks a transaction and stores the result. Returns its new status, or the previous one if the check failed. */
  const follow = async (row: DueTransaction, nowMs: number): Promise<TransactionStatus> => {
    const chain = services.chains.find(row.caip2);
    try {
      if (chain === undefined) throw new Error(`the chain ${row.caip2} is not configured`);
      const finding = await followTransaction(chain, row, nowMs);
      await writeDown(row, nowMs, finding);
      return finding.status;
    } catch (err) {
      report(row.caip2, err);
      await writeDown(row, nowMs, unchanged(row, readDoubt(row)));
      return row.status;
    }
  };

  const followAll = async (rows: readonly DueTransaction[], nowMs: number): Promise<void> => {
    const due = new Map(rows.map((row) => [row.id, row]));
    const followed = new Map<string, Promise<TransactionStatus>>();
    const followInTurn = async (row: DueTransaction): Promise<TransactionStatus> => {
      const earlier = row.status === 'pending' ? due.get(row.after_transaction_id ?? '') : undefined;
      if (earlier === undefined) return follow(row, nowMs);
      const earlierStatus = await followOnce(earlier);
      if (earlierStatus !== 'pending') return follow({ ...row, earlierStatus }, nowMs);
      // A chain that cannot be reached is not called again for each transaction that waits for the same transaction.
      await writeDown(row, nowMs, { status: 'pending', isSettled: false });
      return 'pending';
    };
    const followOnce = (row: DueTransaction): Promise<TransactionStatus> => {
      const following = followed.get(row.id) ?? followInTurn(row);
      followed.set(row.id, following);
      return following;
    };
    await Promise.all(rows.map(followOnce));
  };

  return jobApart({
    name: 'follow-transactions',
    everyMs: EVERY_MS,
    idleMs: WOKEN_IDLE_MS,
    batch: BATCH,
    subjectOf: ({ caip2 }: DueTransaction) => caip2,
    claim(busy, limit) {
      const claimant = { owner: services.processId, nowMs: services.clock.now() };
      // Claims do not use the limited `inUnit`, because chains that hang may occupy all its places.
      return openUnit((em) => claimDueTransactions(em, claimant, { busy, limit }));
    },
    async work(rows) {
      await followAll(rows, services.clock.now());
      return false;
    },
  });
}
