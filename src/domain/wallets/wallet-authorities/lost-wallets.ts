import type { SqlEntityManager } from '@mikro-orm/sql';
import { type QuorumRecord, quorumReference } from '../../../engine/authorization/quorum-records.ts';
import type { WalletAuthority } from '../../../engine/authorization/wallet-authority.ts';
import type { WalletAdditionalSigner } from '../../../generated/schemas.ts';
import { findRecordedOwner, loadQuorumRecords } from '../../access/key-quorums/quorum-records.ts';
import type { Tables } from '../../tables.ts';

// KYSELY: joins wallets with their keys, page by page.

/** The number of wallets per read. */
const PAGE = 500;

/**
 * CHOICE: the maximum number of wallets that are examined, so that the search ends in time. Most wallets have an owner
 * of their own, which must be read.
 */
const MAX_EXAMINED = 100_000;

/** The maximum number of wallets that the result lists. */
const MAX_NAMED = 20;

interface Examined {
  /** The number of examined wallets. Only wallets whose owner the key store verifies are examined. */
  readonly examined: number;
  /** Whether there are more wallets than were examined. */
  readonly hasMore: boolean;
  /** The number of wallets that their owner can no longer use. */
  readonly lost: number;
  /** The first of the lost wallets, at most 20. */
  readonly named: readonly { readonly id: string; readonly appId: string }[];
}

interface Row {
  readonly id: string;
  readonly app_id: string;
  readonly owner_id: string | null;
  readonly additional_signers: string;
  readonly authority: string | null;
}

/**
 * Finds wallets that their owner can no longer use, because the key quorum that the key store has on record as the
 * owner was deleted. This can happen where an earlier version stored a different key quorum with the same key as the
 * owner. Archived wallets are left out.
 */
export async function findLostWallets(em: SqlEntityManager, most = MAX_EXAMINED): Promise<Examined> {
  const known = new Map<string, string>();
  const named: { id: string; appId: string }[] = [];
  let [examined, lost, after] = [0, 0, ''];
  for (;;) {
    const rows = await readPage(em, after);
    await readOwners(em, rows, known);
    for (const row of rows) {
      if (examined === most) return { examined, hasMore: true, lost, named };
      examined += 1;
      if (await hasOwner(em, row, known)) continue;
      lost += 1;
      if (named.length < MAX_NAMED) named.push({ id: row.id, appId: row.app_id });
    }
    if (rows.length < PAGE) return { examined, hasMore: false, lost, named };
    after = rows.at(-1)!.id;
  }
}

function readPage(em: SqlEntityManager, after: string): Promise<Row[]> {
  return em
    .getKysely<Tables>()
    .selectFrom('wallet_keys as key')
    .innerJoin('wallets as wallet', 'wallet.id', 'key.wallet_id')
    .select(['wallet.id', 'wallet.app_id', 'wallet.owner_id', 'wallet.additional_signers', 'key.authority'])
    .where('key.authority', 'is not', null)
    .where('wallet.archived_at_ms', 'is', null)
    .where('key.wallet_id', '>', after)
    .orderBy('key.wallet_id')
    .limit(PAGE)
    .execute();
}

/**
 * Reads the owners of several wallets together.
 *
 * @param known the references of key quorums by id, to which this function adds.
 */
async function readOwners(
  em: SqlEntityManager,
  rows: readonly Row[],
  known: Map<string, string>,
): Promise<void> {
  for (const [id, ofApp] of Map.groupBy(rows, (row) => row.app_id)) {
    const owners = ofApp.flatMap(({ owner_id: owner }) => owner ?? []).filter((owner) => !known.has(owner));
    const records = await loadQuorumRecords({ app: { id }, em }, [...new Set(owners)]);
    for (const { base } of records) known.set(base.id, quorumReference(base));
  }
}

/**
 * Returns whether the server finds the key quorum that the key store has on record as the owner. It searches in the
 * same way as when the wallet is used.
 */
async function hasOwner(
  em: SqlEntityManager,
  row: Row,
  known: ReadonlyMap<string, string>,
): Promise<boolean> {
  const { owner } = JSON.parse(row.authority!) as WalletAuthority;
  if (owner === null || (row.owner_id !== null && known.get(row.owner_id) === owner)) return true;
  const context = { app: { id: row.app_id }, em };
  const signers = JSON.parse(row.additional_signers) as WalletAdditionalSigner;
  const ids = [row.owner_id, ...signers.map(({ signer_id: id }) => id)].filter((id) => id !== null);
  const records = await loadQuorumRecords(context, [...new Set(ids)]);
  return isAmong(records, owner) || (await findRecordedOwner(context, owner, records)) !== undefined;
}

function isAmong(records: readonly QuorumRecord[], owner: string): boolean {
  return records.some(({ base }) => quorumReference(base) === owner);
}
