import type { SqlEntityManager } from '@mikro-orm/sql';
import { prepareQueryOfIds, type QueryOfIds } from '../../query-of-ids.ts';

// HOT: runs for every request that changes or uses an owned resource (bench `https`, 2-of-3 signature).

/** A member of a key quorum and the columns of the key quorum. One without members has a row without a member. */
export interface QuorumRow {
  readonly id: string;
  readonly displayName: string | null;
  readonly threshold: number | null;
  /** The name of the voucher key by which its users are pinned; null if they are not. */
  readonly voucher: string | null;
  /** The id of that key; null if the app does not have it. */
  readonly voucherKeyId: string | null;
  /** Whether it was changed: true or 1. */
  readonly hasChanges: unknown;
  readonly kind: string | null;
  readonly member: string | null;
  /** Of a pinned user: the id in the app's login. */
  readonly subject: string | null;
}

const selectRows = prepareQueryOfIds<QuorumRow>((database, { ids, appId }) =>
  database
    .selectFrom('key_quorums as quorum')
    .leftJoin('key_quorum_members as row', 'row.key_quorum_id', 'quorum.id')
    .leftJoin('voucher_keys as key', (join) =>
      join.onRef('key.app_id', '=', 'quorum.app_id').onRef('key.name', '=', 'quorum.voucher'),
    )
    .select([
      'quorum.id',
      'quorum.display_name as displayName',
      'quorum.authorization_threshold as threshold',
      'quorum.voucher',
      'key.id as voucherKeyId',
      'row.kind',
      'row.member',
      'row.subject',
    ])
    .select(({ exists, selectFrom }) =>
      exists(
        selectFrom('key_quorum_changes as change')
          .select('change.position')
          .whereRef('change.key_quorum_id', '=', 'quorum.id'),
      ).as('hasChanges'),
    )
    .where('quorum.id', 'in', ids)
    .where('quorum.app_id', '=', appId)
    .orderBy('row.position'),
);

/**
 * What a unit of work has read last, on its entity manager.
 *
 * HOT: not in a WeakMap: V8 keeps the values of one that is old until a full garbage collection.
 */
const lastRead = Symbol('the rows of key quorums that were read last');

interface Reader {
  [lastRead]?:
    | { readonly appId: string; readonly ids: readonly string[]; readonly rows: QuorumRow[] }
    | undefined;
}

/** Reads the rows of the app's key quorums among these ids, in the order of their members. */
export const readQuorumRows: QueryOfIds<QuorumRow> = async (context, ids) => {
  if (ids.length === 0) return [];
  const rows = await selectRows(context, ids);
  readerOf(context)[lastRead] = { appId: context.app.id, ids, rows };
  return rows;
};

/**
 * As `readQuorumRows`, without reading again what the unit of work has read last: the signers of a request are
 * counted by the server and shown to the vault by the same rows.
 */
export const knownQuorumRows: QueryOfIds<QuorumRow> = async (context, ids) => {
  const before = readerOf(context)[lastRead];
  const isKnown = before?.appId === context.app.id && isSameList(before.ids, ids);
  return isKnown ? before.rows : readQuorumRows(context, ids);
};

/** Call it when members of a key quorum have changed. */
export function forgetQuorumRows(context: { readonly em: SqlEntityManager }): void {
  readerOf(context)[lastRead] = undefined;
}

function readerOf({ em }: { readonly em: SqlEntityManager }): SqlEntityManager & Reader {
  return em;
}

function isSameList(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((id, place) => id === other[place]);
}
