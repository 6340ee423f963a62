import type { SqlEntityManager } from '@mikro-orm/sql';
import type { AuditedChange } from './audit.ts';

/**
 * What one unit of work keeps in memory: lists of what the unit has stored, which take effect when the unit commits, and
 * values that the unit has read, which are dropped when the unit ends. A savepoint has separate notes. They are added to
 * the outer notes unless the savepoint is rolled back.
 */
export interface UnitNotes {
  /** The events that the unit has stored. */
  readonly events: { readonly id: string; readonly type: string }[];
  /** Ids of the transactions that the unit has stored. */
  readonly transactions: string[];
  /** Ids of the policies that allowed the request. */
  readonly policies: string[];
  /** The changes for the audit log. */
  readonly changes: AuditedChange[];
  /** Whether the commit wakes the delivery of events. */
  hasDeliveries: boolean;
  /** The last record of the audit log that was written. */
  lastRecord: WrittenRecord | undefined;
  /** The settings of the app, so that all steps of a transaction use the same settings. */
  settings: { readonly appId: string; readonly text: string } | undefined;
  /** The key quorum rows that were read most recently. */
  quorums: ReadQuorums | undefined;
  /** Whether the unit has ended. Notes that are made after the end would be lost. */
  isOver: boolean;
}

/** The identity of an audit record, before and after it has a place in the log. */
export interface WrittenRecord {
  readonly pendingId: number;
  readonly recordedAtMs: number;
}

interface ReadQuorums {
  readonly appId: string;
  readonly ids: readonly string[];
  readonly rows: QuorumRow[];
}

/**
 * A member of a key quorum, and the columns of the key quorum. A key quorum without members has one row without a
 * member.
 */
export interface QuorumRow {
  readonly id: string;
  readonly displayName: string | null;
  readonly threshold: number | null;
  /** The name of the voucher key by which its users are pinned. Null if they are not pinned. */
  readonly voucher: string | null;
  /** The id of that key. Null if the app does not have it. */
  readonly voucherKeyId: string | null;
  /** Whether the key quorum was changed. The value is true or 1. */
  readonly hasChanges: unknown;
  readonly kind: string | null;
  readonly member: string | null;
  /** The id in the app's login, only for a pinned user. */
  readonly subject: string | null;
}

/** The parts of a unit of work that code needs to write in it. */
export interface UnitContext {
  readonly em: SqlEntityManager;
  readonly notes: UnitNotes;
}

/** Work in a unit of work. */
export type UnitWork<T> = (em: SqlEntityManager, notes: UnitNotes) => Promise<T>;

export function createNotes(): UnitNotes {
  return {
    events: [],
    transactions: [],
    policies: [],
    changes: [],
    hasDeliveries: false,
    lastRecord: undefined,
    settings: undefined,
    quorums: undefined,
    isOver: false,
  };
}

/** Adds the notes of a released savepoint to the surrounding notes. */
export function addNotes(outer: UnitNotes, inner: UnitNotes): void {
  outer.events.push(...inner.events);
  outer.transactions.push(...inner.transactions);
  outer.policies.push(...inner.policies);
  outer.changes.push(...inner.changes);
  outer.hasDeliveries ||= inner.hasDeliveries;
  outer.lastRecord = inner.lastRecord ?? outer.lastRecord;
  // The savepoint may have changed key quorums.
  outer.quorums = undefined;
}
