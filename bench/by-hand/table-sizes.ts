import { parseArgs } from 'node:util';
import { Client } from 'pg';
import { entities } from '../../src/domain/tables.ts';
import { migrate } from '../../src/storage/migrate.ts';
import { openDatabase } from '../../src/storage/open-database.ts';
import { startEmbeddedPostgres } from '../../test/support/postgres/embedded-postgres.ts';

// How large the tables that only grow become on PostgreSQL, and what it costs to drop a partition instead of deleting its
// rows: `nice -n 19 node bench/by-hand/table-sizes.ts --rows 10000000`. One table after the other, so that the disk
// holds one of them. The rows have the lengths of those of a server that signs and transfers.

const PARTITIONS = 10;

interface Filled {
  readonly table: string;
  /** The rows from `$1` up to `$2`, exclusive. */
  readonly fill: string;
}

const id = (name: string): string => `substr(md5('${name}' || n) || md5(n::text), 1, 24)`;
const at = '1767225600000 + n * 50';

const tables: readonly Filled[] = [
  {
    table: 'audit_records',
    fill: `insert into audit_records (leaf_index, pending_id, app_id, recorded_at_ms, entry)
      select n, n + 1, 'app' || n % 20, ${at},
        '{"app_id":"' || ${id('a')} || '","at_ms":' || (${at}) || ',"by":{"app_id":"' || ${id('a')} || '","kind":"app_secret","signers":["' || md5(n::text) || md5('s' || n) || '"]},"decision":"allow","ids":{"wallet_id":"' || ${id('w')} || '"},"operation":"walletRpc","request":"' || encode(sha256(n::text::bytea), 'base64') || '","request_id":"' || gen_random_uuid() || '","status":200,"version":1}'
      from generate_series($1::bigint, $2::bigint - 1) as n`,
  },
  {
    table: 'wallet_uses',
    fill: `insert into wallet_uses (sequence, app_id, wallet_id, operation, method, request_id, judged_at_ms, decision, policy_ids, request)
      select n, 'app' || n % 20, substr(md5('w' || n % 100000) || 'aaaaaaaa', 1, 24), 'walletRpc', 'eth_signTransaction', gen_random_uuid()::text, ${at}, 'allowed', '["' || ${id('p')} || '"]',
        '{"method":"eth_signTransaction","params":{"transaction":{"to":"0x' || md5(n::text) || '12345678","value":"0x' || to_hex(n) || '","chain_id":8453,"gas_limit":"0x5208","nonce":' || n || '}}}'
      from generate_series($1::bigint, $2::bigint - 1) as n`,
  },
  {
    table: 'outbox_events',
    fill: `insert into outbox_events (sequence, id, app_id, type, payload, resource_id, created_at_ms, fanned_out_at_ms)
      select n, 'msg_' || ${id('m')}, 'app' || n % 20, 'transaction.confirmed',
        '{"type":"transaction.confirmed","wallet_id":"' || ${id('w')} || '","transaction_id":"' || gen_random_uuid() || '","caip2":"eip155:8453","transaction_hash":"0x' || md5(n::text) || md5('h' || n) || '","transaction_request":{"to":"0x' || md5(n::text) || '12345678","value":"0x' || to_hex(n) || '"}}',
        gen_random_uuid()::text, ${at}, ${at}
      from generate_series($1::bigint, $2::bigint - 1) as n`,
  },
  {
    table: 'webhook_deliveries',
    fill: `insert into webhook_deliveries (id, endpoint_id, event_sequence, event_id, event_type, status, order_key, failures, attempt_count, attempts, next_attempt_at_ms, created_at_ms, finished_at_ms)
      select substr(md5('d' || n) || md5(n::text), 1, 32), substr(md5('e' || n % 20) || 'aaaaaaaa', 1, 24), n, 'msg_' || ${id('m')}, 'transaction.confirmed', 'delivered', null, 0, 1,
        '[{"attempted_at":' || (${at}) || ',"status":200,"duration_ms":31}]', null, ${at}, ${at}
      from generate_series($1::bigint, $2::bigint - 1) as n`,
  },
];

const { values } = parseArgs({
  options: { rows: { type: 'string', default: '1000000' }, only: { type: 'string' } },
});
const rows = Number(values.rows);
const each = Math.ceil(rows / PARTITIONS);
const server = await startEmbeddedPostgres([
  ...['-c', 'fsync=off', '-c', 'full_page_writes=off', '-c', 'max_wal_size=2GB', '-c', 'autovacuum=off'],
]);
try {
  const admin = new Client({ connectionString: server.urlOf('postgres') });
  await admin.connect();
  await admin.query('create database sizes');
  await admin.end();
  const database = await openDatabase(entities, {
    kind: 'postgres',
    url: server.urlOf('sizes'),
    poolSize: 1,
  });
  await migrate(database.orm);
  await database.close();
  const client = new Client({ connectionString: server.urlOf('sizes') });
  await client.connect();
  for (const filled of tables) {
    if (values.only !== undefined && values.only !== filled.table) continue;
    console.log(JSON.stringify(await measure(client, filled)));
  }
  await client.end();
} finally {
  await server.stop();
}

async function measure(client: Client, { table, fill }: Filled): Promise<object> {
  await client.query(`drop table ${table}_p0, ${table}_default`);
  for (let at = 0; at < PARTITIONS; at += 1) {
    await client.query(
      `create table ${table}_p${at} partition of ${table} for values from (${at * each}) to (${(at + 1) * each})`,
    );
  }
  const filledMs = await timed(async () => {
    for (let at = 0; at < PARTITIONS; at += 1) await client.query(fill, [at * each, (at + 1) * each]);
  });
  await client.query(`vacuum analyze ${table}`);
  const { rows: sizes } = await client.query<{ heap: string; indexes: string }>(
    `select sum(pg_table_size(inhrelid)) as heap, sum(pg_indexes_size(inhrelid)) as indexes
     from pg_inherits where inhparent = '${table}'::regclass`,
  );
  const dropMs = await timed(() => client.query(`drop table ${table}_p0`));
  const key = { audit_records: 'leaf_index', webhook_deliveries: 'event_sequence' }[table] ?? 'sequence';
  const deleteMs = await timed(() =>
    client.query(`delete from ${table} where ${key} >= ${each} and ${key} < ${2 * each}`),
  );
  await client.query(`drop table ${table} cascade`);
  const [heap, indexes] = [Number(sizes[0]!.heap), Number(sizes[0]!.indexes)];
  const bytesPerRow = (heap + indexes) / rows;
  return {
    ...{
      table,
      rows,
      heap_gb: heap / 1e9,
      indexes_gb: indexes / 1e9,
      bytes_per_row: Math.round(bytesPerRow),
    },
    ...{ at_100_million_gb: Math.round(bytesPerRow / 10), fill_seconds: Math.round(filledMs / 1000) },
    ...{ rows_of_a_partition: each, drop_ms: Math.round(dropMs), delete_ms: Math.round(deleteMs) },
  };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}
