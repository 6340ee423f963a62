import type { Database } from 'better-sqlite3';
import { leafHash, rootOf } from '../../../src/engine/crypto/tlog/merkle-tree.ts';
import { appendToTiles, type ReadTile, subtreesOf } from '../../../src/engine/crypto/tlog/tiles.ts';
import { credentials } from '../credentials.ts';

// As often, and as many at once, as in Custos.
const USES_EVERY_MS = 100;
const SEQUENCED_EVERY_MS = 500;
const SEQUENCED_AT_ONCE = 1000;
const DAY_MS = 24 * 60 * 60 * 1000;

/** Keeps the record of a use of a wallet. */
export type KeepUse = (use: {
  readonly walletId: string;
  readonly method: string;
  readonly body: unknown;
}) => void;

/**
 * The records that Custos keeps between requests: each use of a wallet with its request, and the place of each record of
 * the audit log in its Merkle tree. Prepared statements, in transactions of many.
 */
export function keepRecords(database: Database): KeepUse {
  sequenceRecords(database);
  return recordUses(database);
}

function recordUses(database: Database): KeepUse {
  const insert = database.prepare(
    `insert into wallet_uses
    (app_id, wallet_id, operation, method, request_id, judged_at_ms, policy_ids, request, decision)
    values (?, ?, 'walletRpc', ?, ?, ?, '[]', ?, 'allowed')`,
  );
  const count = database.prepare(
    `insert into use_volumes (app_id, day, bytes) values (?, ?, ?)
    on conflict (app_id, day) do update set bytes = use_volumes.bytes + excluded.bytes`,
  );
  let waiting: unknown[][] = [];
  let bytes = 0;
  const insertAll = database.transaction((uses: unknown[][]) => {
    count.run(credentials.appId, Math.floor(Date.now() / DAY_MS), bytes);
    for (const use of uses) insert.run(use);
  });
  setInterval(() => {
    if (waiting.length === 0) return;
    insertAll.immediate(waiting);
    [waiting, bytes] = [[], 0];
  }, USES_EVERY_MS).unref();
  let made = 0;
  return ({ walletId, method, body }) => {
    const request = JSON.stringify(body);
    made += 1;
    bytes += Buffer.byteLength(request);
    waiting.push([credentials.appId, walletId, method, `r${made}`, Date.now(), request]);
  };
}

function sequenceRecords(database: Database): void {
  const move = database.prepare(
    `insert into audit_records (leaf_index, pending_id, app_id, origin, recorded_at_ms, entry)
    select ? + row_number() over (order by id) - 1, id, app_id, origin, recorded_at_ms, entry
    from (select * from audit_pending order by id limit ${SEQUENCED_AT_ONCE})
    returning pending_id, entry`,
  );
  const forget = database.prepare('delete from audit_pending where id <= ?');
  const selectTile = database
    .prepare('select hashes from audit_tiles where level = ? and tile_index = ?')
    .pluck();
  const keepTile = database.prepare(
    `insert into audit_tiles (level, tile_index, hashes) values (?, ?, ?)
    on conflict (level, tile_index) do update set hashes = excluded.hashes`,
  );
  const keepCheckpoint = database.prepare(
    'insert into audit_checkpoints (size, root, note, created_at_ms) values (?, ?, null, ?)',
  );
  const stored: ReadTile = async (level, index) =>
    (selectTile.get(level, index) as Uint8Array | undefined) ?? new Uint8Array();
  let size = 0;
  const place = database.transaction((): Uint8Array[] => {
    const rows = move.all(size) as { pending_id: number; entry: string }[];
    const placed = rows.sort((one, other) => one.pending_id - other.pending_id);
    const last = placed.at(-1);
    if (last !== undefined) forget.run(last.pending_id);
    return placed.map(({ entry }) => leafHash(Buffer.from(entry)));
  });
  const sequence = async (): Promise<void> => {
    for (;;) {
      const leaves = place.immediate();
      if (leaves.length === 0) return;
      const tiles = await appendToTiles(stored, size, leaves);
      for (const { level, index, hashes } of tiles) keepTile.run(level, index, hashes);
      size += leaves.length;
      const root = Buffer.from(await rootOf(subtreesOf(stored), size)).toString('base64');
      keepCheckpoint.run(size, root, Date.now());
      if (leaves.length < SEQUENCED_AT_ONCE) return;
    }
  };
  let running = false;
  setInterval(() => {
    if (running) return;
    running = true;
    void sequence().finally(() => {
      running = false;
    });
  }, SEQUENCED_EVERY_MS).unref();
}
