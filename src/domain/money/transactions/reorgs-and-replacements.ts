import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Look } from '../../../ports/chains.ts';
import { TransactionEntity, type TransactionRow } from './transaction.entity.ts';

/**
 * Reports of nodes that contradict a transaction's stored state, and how long they have lasted. A node that lags, forks
 * or lies can report the same as a correct node. So a contradiction counts only when later blocks have confirmed it.
 */
export interface Doubt {
  /**
   * The state that the reports suggest:
   * - `replaced`, `expired`: the transaction can never be included.
   * - `reorganized`: its block is no longer in the chain.
   * - `dropped`: no node has the transaction, and all refuse it.
   */
  readonly as: 'replaced' | 'expired' | 'reorganized' | 'dropped';
  /** The number of consecutive checks that showed the contradiction. */
  readonly looks: number;
  /** The block at the last check that counted. */
  readonly at: bigint;
  /** The time of the first check, Unix ms. */
  readonly sinceMs: number;
}

/** CHOICE: a contradiction counts after this number of checks, each several blocks after the previous one. */
const LOOKS = 3;

/** Returns the doubt after one more check. It replaces a doubt of another kind. */
export function addLook(
  before: Doubt | undefined,
  as: Doubt['as'],
  { look, nowMs }: { readonly look: Look; readonly nowMs: number },
): Doubt {
  if (before?.as !== as) return { as, looks: 1, at: look.at, sinceMs: nowMs };
  if (look.at < before.at + look.distance) return before;
  return { ...before, looks: before.looks + 1, at: look.at };
}

export function isProven({ looks }: Doubt): boolean {
  return looks >= LOOKS;
}

export function readDoubt({ doubt }: { readonly doubt: string | null }): Doubt | undefined {
  if (doubt === null) return undefined;
  const { at, ...rest } = JSON.parse(doubt) as Omit<Doubt, 'at'> & { readonly at: string };
  return { ...rest, at: BigInt(at) };
}

export function writeDoubt(doubt: Doubt | undefined): string | null {
  return doubt === undefined ? null : JSON.stringify({ ...doubt, at: String(doubt.at) });
}

/**
 * Returns the hash of another stored transaction of the sender that has the same nonce and is final. The given
 * transaction can then never be included. Returns undefined if there is none. Call it only for nonces that count for
 * the whole account.
 */
export async function findFinalSibling(
  em: SqlEntityManager,
  { id, caip2, sender, nonce, transaction_hash: hash }: TransactionRow,
): Promise<string | undefined> {
  if (nonce === null) return undefined;
  const isFinal = [{ status: 'finalized' }, { status: 'execution_reverted', nextCheckAtMs: null }];
  const rows = await em.find(
    TransactionEntity,
    { caip2, sender, nonce, id: { $ne: id }, $or: isFinal },
    { fields: ['transactionHash', 'transactionRequest'], disableIdentityMap: true },
  );
  const sibling = rows.find((row) => row.transactionHash !== hash && !hasOwnLane(row.transactionRequest));
  return sibling?.transactionHash ?? undefined;
}

/** Returns whether the nonce of a stored request belongs to a separate nonce lane, which Tempo allows. */
function hasOwnLane(request: string | null): boolean {
  const { nonce_key: key } = JSON.parse(request ?? '{}') as { readonly nonce_key?: string | number };
  return key !== undefined && BigInt(key) !== 0n;
}
