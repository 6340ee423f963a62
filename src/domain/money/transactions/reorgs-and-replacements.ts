import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Observation } from '../../../ports/chains.ts';
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
  readonly observations: number;
  /** The block at the last check that counted. */
  readonly at: bigint;
  /** The time of the first check, Unix ms. */
  readonly sinceMs: number;
}

/** CHOICE: a contradiction counts after this number of checks, each several blocks after the previous one. */
const NEEDED_OBSERVATIONS = 3;

/** Returns the doubt after one more check. It replaces a doubt of another kind. */
export function addObservation(
  before: Doubt | undefined,
  as: Doubt['as'],
  { observed, nowMs }: { readonly observed: Observation; readonly nowMs: number },
): Doubt {
  if (before?.as !== as) return { as, observations: 1, at: observed.at, sinceMs: nowMs };
  if (observed.at < before.at + observed.distance) return before;
  return { ...before, observations: before.observations + 1, at: observed.at };
}

export function isProven({ observations }: Doubt): boolean {
  return observations >= NEEDED_OBSERVATIONS;
}

/** A doubt as it is stored, in JSON. */
interface StoredDoubt extends Pick<Doubt, 'as' | 'sinceMs'> {
  readonly looks: number;
  readonly at: string;
}

export function readDoubt({ doubt }: { readonly doubt: string | null }): Doubt | undefined {
  if (doubt === null) return undefined;
  const { looks, at, ...rest } = JSON.parse(doubt) as StoredDoubt;
  return { ...rest, observations: looks, at: BigInt(at) };
}

export function writeDoubt(doubt: Doubt | undefined): string | null {
  if (doubt === undefined) return null;
  const { observations, at, ...rest } = doubt;
  return JSON.stringify({ ...rest, looks: observations, at: String(at) } satisfies StoredDoubt);
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
