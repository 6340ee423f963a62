// The rows of one app, which are moved from one database to another. A row that is on its way is in the table
// `moved_rows`, as JSON. Everything here is SQL that runs on PostgreSQL and on a distributed schema of Citus: one
// statement at a time, and each on the tables of one schema.

/** Runs a statement on one connection. */
export type Ask = <Row extends object>(text: string, values?: readonly unknown[]) => Promise<readonly Row[]>;

/** A table without `app_id`, whose rows belong to the app of another row. */
interface ChildTable {
  readonly table: string;
  readonly parent: string;
  /** The column with the id of the parent. */
  readonly key: string;
}

/** The tables with rows of apps that have no `app_id`. Each is before its parent. */
const children: readonly ChildTable[] = [
  { table: 'account_wallets', parent: 'accounts', key: 'account_id' },
  { table: 'aggregation_records', parent: 'aggregations', key: 'aggregation_id' },
  { table: 'condition_set_items', parent: 'condition_sets', key: 'condition_set_id' },
  { table: 'fiat_deposits', parent: 'fiat_deposit_accounts', key: 'account_id' },
  { table: 'intent_parties', parent: 'intents', key: 'intent_id' },
  { table: 'intent_signatures', parent: 'intents', key: 'intent_id' },
  { table: 'key_quorum_changes', parent: 'key_quorums', key: 'key_quorum_id' },
  { table: 'key_quorum_members', parent: 'key_quorums', key: 'key_quorum_id' },
  { table: 'oauth_refresh_tokens', parent: 'oauth_grants', key: 'grant_id' },
  { table: 'organization_secrets', parent: 'organizations', key: 'organization_id' },
  { table: 'transaction_authorizations', parent: 'transactions', key: 'transaction_id' },
  { table: 'wallet_action_steps', parent: 'wallet_actions', key: 'action_id' },
  { table: 'wallet_automation_attachments', parent: 'wallets', key: 'wallet_id' },
  { table: 'wallet_keys', parent: 'wallets', key: 'wallet_id' },
  { table: 'wallet_signers', parent: 'wallets', key: 'wallet_id' },
  { table: 'webhook_deliveries', parent: 'webhook_endpoints', key: 'endpoint_id' },
];

/** The tables whose rows of an app have its id in `app_id`. */
const owned = [
  ...['accounts', 'aggregations', 'allowlist_entries', 'app_signing_keys', 'card_customers', 'cards'],
  ...['condition_sets', 'deleted_users', 'earn_vaults', 'external_fiat_accounts', 'fiat_customers'],
  ...['fiat_deposit_accounts', 'fiat_deposit_instructions', 'fingerprint_keys', 'idempotency_records'],
  ...['intents', 'key_quorum_seals', 'key_quorums', 'linked_accounts', 'oauth_device_codes', 'oauth_grants'],
  ...['oauth_wrong_codes', 'operators', 'organizations', 'outbox_events', 'policies', 'policy_seals'],
  ...['transactions', 'use_volumes', 'used_signatures', 'user_keys', 'user_search_terms', 'user_sessions'],
  ...['users', 'voucher_keys', 'wallet_actions', 'wallet_automation_executions', 'wallet_automations'],
  ...[
    'wallet_imports',
    'wallet_recoveries',
    'wallet_uses',
    'wallets',
    'webhook_endpoints',
    'webhook_secrets',
  ],
];

/** All tables whose rows are moved with their app. Children are before their parents. */
export const movedTables: readonly string[] = [...children.map(({ table }) => table), ...owned, 'apps'];

/**
 * The tables that belong to a database, not to an app. Of the first ones, what concerns the app is copied.
 *
 * CHOICE: the audit log stays, because its records are leaves of the tree of its database.
 */
export const stayingTables: readonly string[] = [
  ...['accepted_accounts', 'chain_positions', 'fiat_positions', 'master_key_checks', 'rate_levels'],
  ...['app_moves', 'audit_checkpoints', 'audit_keys', 'audit_pending', 'audit_records', 'audit_tiles'],
  ...['database_identity', 'lock_secrets', 'moved_rows', 'restores', 'schema_migrations', 'server_processes'],
];

/** The columns with numbers of a sequence, which other rows of the other database may already have. */
const numbered: Readonly<Record<string, { readonly column: string; readonly sequenceOf: string }>> = {
  outbox_events: { column: 'sequence', sequenceOf: 'outbox_events' },
  webhook_deliveries: { column: 'event_sequence', sequenceOf: 'outbox_events' },
  webhook_endpoints: { column: 'after_sequence', sequenceOf: 'outbox_events' },
  wallet_uses: { column: 'sequence', sequenceOf: 'wallet_uses' },
};

const ownsNumber = (table: string): boolean => numbered[table]?.sequenceOf === table;

/** Returns the condition for the rows of the app `$1`. */
function ofApp(table: string): string {
  const child = children.find((each) => each.table === table);
  if (child !== undefined) return `"${child.key}" in (select id from "${child.parent}" where app_id = $1)`;
  return table === 'apps' ? 'id = $1' : 'app_id = $1';
}

/** The rows of a shared table that are copied with an app, as a query of the table `t`. */
const copied: Readonly<Record<string, string>> = {
  accepted_accounts: `select t.* from accepted_accounts t where lower(t.address) in (select lower(address) from wallets where app_id = $1)`,
  chain_positions: 'select t.* from chain_positions t where $1::text is not null',
  fiat_positions:
    'select t.* from fiat_positions t where (t.provider, t.environment) in (select provider, environment from fiat_deposit_accounts where app_id = $1)',
  master_key_checks: 'select t.* from master_key_checks t where $1::text is not null',
  rate_levels: 'select t.* from rate_levels t where strpos(t.key, $1) > 0',
};

/** Takes the rows of an app out of their tables, and puts them into `moved_rows`. */
export async function takeRows(ask: Ask, appId: string): Promise<void> {
  // An earlier move whose last step was missing may have left some. The app has come back since.
  await dropTakenRows(ask, appId);
  for (const [table, query] of Object.entries(copied)) {
    const found = await ask<{ content: string }>(
      `select row_to_json(found)::text as content from (${query}) as found`,
      [appId],
    );
    // NOTE: Citus 13.2 sends a plain `insert … select` from one of its tables with a syntax error to the worker.
    await ask(
      `insert into moved_rows (app_id, place, position, content)
       select $1, $2, position, content from unnest($3::text[]) with ordinality as rows (content, position)`,
      [appId, table, found.map(({ content }) => content)],
    );
  }
  for (const table of movedTables)
    await ask(
      `with gone as (delete from "${table}" where ${ofApp(table)} returning *)
       insert into moved_rows (app_id, place, position, content)
       select $1::text, '${table}', row_number() over (${ownsNumber(table) ? 'order by sequence' : ''}), row_to_json(gone)::text
       from gone`,
      [appId],
    );
}

/** Returns the tables that have rows of an app. */
export async function tablesWithRows(ask: Ask, appId: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const table of movedTables) {
    const rows = await ask(`select 1 as found from "${table}" where ${ofApp(table)} limit 1`, [appId]);
    if (rows.length > 0) found.push(table);
  }
  return found;
}

/** Deletes the rows that were taken. */
export async function dropTakenRows(ask: Ask, appId: string): Promise<void> {
  await ask('delete from moved_rows where app_id = $1', [appId]);
}

const ROWS_AT_ONCE = 500;
/** A batch has at most this many characters, unless one row is longer. A string of all rows could be too long. */
const CHARACTERS_AT_ONCE = 4_000_000;
const NUMBERS_AT_ONCE = 20_000;

/** Yields the taken rows of a table as JSON, in their order. */
export async function* takenRows(ask: Ask, appId: string, table: string): AsyncGenerator<readonly string[]> {
  for (let after = '0'; ; ) {
    const rows = await ask<{ position: string; content: string }>(
      `select position, content from (
         select position, content, sum(length(content)) over (order by position) - length(content) as before
         from (select position, content from moved_rows where app_id = $1 and place = $2 and position > $3
               order by position limit ${ROWS_AT_ONCE}) as next) as sized
       where before < ${CHARACTERS_AT_ONCE} order by position`,
      [appId, table, after],
    );
    if (rows.length === 0) return;
    yield rows.map(({ content }) => content);
    after = rows.at(-1)!.position;
  }
}

/** Returns the number that a row gets in place of its number in the old database. */
type Renumber = (number: number) => number;

/**
 * Gives each taken row a new number of the sequence, in the same order.
 *
 * NOTE: a number that no row has, such as that of an expired event, becomes that of the row before it.
 */
async function renumbering(
  { from, to }: { readonly from: Ask; readonly to: Ask },
  appId: string,
  table: string,
): Promise<Renumber> {
  const [total] = await from<{ rows: string }>(
    'select count(*) as rows from moved_rows where app_id = $1 and place = $2',
    [appId, table],
  );
  const count = Number(total!.rows);
  const known = new Float64Array(count);
  const given = new Float64Array(count + 1);
  // All numbers at once as rows of the driver would take a hundred times the memory.
  for (let index = 0, after = '0'; index < count; ) {
    const batch = await from<{ position: string; number: string }>(
      `select position, content::json->>'sequence' as number from moved_rows
       where app_id = $1 and place = $2 and position > $3 order by position limit ${NUMBERS_AT_ONCE}`,
      [appId, table, after],
    );
    for (const { number } of batch) known[index++] = Number(number);
    after = batch.at(-1)!.position;
  }
  for (let index = 0; index <= count; ) {
    const batch = await to<{ number: string }>(
      `select nextval('"${table}_sequence_seq"') as number from generate_series(1, $1::int)`,
      [Math.min(NUMBERS_AT_ONCE, count + 1 - index)],
    );
    for (const { number } of batch) given[index++] = Number(number);
  }
  return (number) => {
    // The first new number stands for everything before the first row.
    let [low, high] = [0, known.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (known[middle]! <= number) low = middle + 1;
      else high = middle;
    }
    return given[low]!;
  };
}

/** Returns the names of a table's columns, in their order. */
async function columnsOf(ask: Ask, table: string): Promise<readonly string[]> {
  const rows = await ask<{ name: string }>(
    `select attname as name from pg_attribute
     where attrelid = '"${table}"'::regclass and attnum > 0 and not attisdropped order by attnum`,
  );
  return rows.map(({ name }) => name);
}

interface PutOptions {
  /** The connection to the database that has the taken rows. */
  readonly from: Ask;
  readonly to: Ask;
  readonly appId: string;
  /** Whether numbers of sequences are replaced: the rows come into another database. */
  readonly isElsewhere: boolean;
  readonly onProgress: (rows: number) => void;
}

/** Puts the taken rows of an app into their tables. Returns how many. */
export async function putRows({ from, to, appId, isElsewhere, onProgress }: PutOptions): Promise<number> {
  const sequences = new Map<string, Renumber>();
  if (isElsewhere)
    for (const table of movedTables.filter(ownsNumber))
      sequences.set(table, await renumbering({ from, to }, appId, table));
  let count = 0;
  for (const table of movedTables) {
    const column = numbered[table]?.column;
    const renumber = sequences.get(numbered[table]?.sequenceOf ?? '');
    const columns = (await columnsOf(to, table)).map((name) => `"${name}"`).join(', ');
    for await (const rows of takenRows(from, appId, table)) {
      const written =
        column === undefined || renumber === undefined
          ? rows
          : rows.map((row) => withNumber(row, column, renumber));
      await to(
        `insert into "${table}" (${columns}) select ${columns} from json_populate_recordset(null::"${table}", $1::json)`,
        [`[${written.join(',')}]`],
      );
      count += rows.length;
      onProgress(count);
    }
  }
  return count;
}

/** Replaces a number of a row. The other numbers of these tables are exact in JavaScript, too. */
function withNumber(row: string, column: string, renumber: Renumber): string {
  const parsed = JSON.parse(row) as Record<string, number | null>;
  const number = parsed[column];
  if (typeof number === 'number') parsed[column] = renumber(number);
  return JSON.stringify(parsed);
}

/** The number of rows of a table, and a hash of their content without the numbers of sequences. */
interface Digest {
  readonly rows: string;
  readonly hash: string;
}

const digest = (json: string, table: string): string =>
  `select count(*)::text as rows, coalesce(sum(('x' || substr(md5((${json} - '${numbered[table]?.column ?? ''}'::text)::text), 1, 15))::bit(60)::bigint), 0)::text as hash`;

/** Returns the tables whose rows differ from those that were taken. */
export async function tablesThatDiffer({
  from,
  to,
  appId,
}: Pick<PutOptions, 'from' | 'to' | 'appId'>): Promise<readonly string[]> {
  const differing: string[] = [];
  for (const table of movedTables) {
    const [taken] = await from<Digest>(
      `${digest('content::jsonb', table)} from moved_rows where app_id = $1 and place = $2`,
      [appId, table],
    );
    const [put] = await to<Digest>(
      `${digest('to_jsonb(t)', table)} from (select * from "${table}" where ${ofApp(table)}) as t`,
      [appId],
    );
    if (taken!.rows !== put!.rows || taken!.hash !== put!.hash) differing.push(table);
  }
  return differing;
}

/** Copies what shared tables say about an app, unless the other database has it already. */
export async function putSharedRows({
  from,
  to,
  appId,
}: Pick<PutOptions, 'from' | 'to' | 'appId'>): Promise<void> {
  for (const table of ['accepted_accounts', 'master_key_checks', 'rate_levels'])
    for await (const rows of takenRows(from, appId, table))
      await to(
        `insert into "${table}" select * from json_populate_recordset(null::"${table}", $1::json) on conflict do nothing`,
        [`[${rows.join(',')}]`],
      );
}

/**
 * Sets the positions up to which the new cell has read chains and providers back to those of the old cell where these
 * are earlier, so that no deposit of the app is missed. A deposit that is found twice is recorded once.
 */
export async function rewindPositions({
  from,
  to,
  appId,
}: Pick<PutOptions, 'from' | 'to' | 'appId'>): Promise<void> {
  for await (const rows of takenRows(from, appId, 'chain_positions'))
    for (const { caip2, position } of rows.map(
      (row) => JSON.parse(row) as { caip2: string; position: string },
    )) {
      const [known] = await to<{ position: string }>(
        'select position from chain_positions where caip2 = $1 for update',
        [caip2],
      );
      const first =
        known === undefined || known.position === '' ? position : earlier(known.position, position);
      if (first === known?.position) continue;
      await to(
        `insert into chain_positions (caip2, position, leased_until_ms) values ($1, $2, 0)
         on conflict (caip2) do update set position = excluded.position, leased_until_ms = 0`,
        [caip2, first],
      );
    }
  for await (const rows of takenRows(from, appId, 'fiat_positions'))
    await to(
      // The order of the positions of a provider is unknown, so all of its history is read again.
      `insert into fiat_positions as known
       select * from json_populate_recordset(null::fiat_positions, $1::json)
       on conflict (provider, environment) do update set position = '' where known.position <> excluded.position`,
      [`[${rows.join(',')}]`],
    );
}

/** The parts of positions that order them: the block of an EVM chain, the slots of a round on Solana. */
interface ChainPosition {
  readonly block?: string;
  readonly place?: string;
  readonly from?: number;
  readonly unfinished?: readonly { readonly from: number }[];
}

/** Returns a position from which everything is read that is missing at one of two positions. */
function earlier(one: string, other: string): string {
  if (one === other || !one.startsWith('{') || !other.startsWith('{')) return one;
  const [first, second] = [one, other].map((position) => JSON.parse(position) as ChainPosition) as [
    ChainPosition,
    ChainPosition,
  ];
  if (first.block !== undefined && second.block !== undefined) {
    const isFirst = BigInt(first.block) < BigInt(second.block);
    const isSame = first.block === second.block;
    // Of two positions in one block, the one that names a transfer is within the block.
    return isFirst || (isSame && (first.place !== undefined || second.place === undefined)) ? one : other;
  }
  if (first.from === undefined || second.from === undefined) return one;
  const slots = [first, second].flatMap(({ from, unfinished = [] }) => [
    from!,
    ...unfinished.map((range) => range.from),
  ]);
  const from = Math.min(...slots);
  // A new round over all addresses begins at this slot.
  return JSON.stringify({ from, to: from, isEnded: true });
}
