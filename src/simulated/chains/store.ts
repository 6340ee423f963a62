import Sqlite, { type Database, type Statement } from 'better-sqlite3';

/*
 * Simulated chains are a world outside the server: they keep their own file, take their own transactions and never
 * wait for the server's. Every call is synchronous, so one call is one transaction and nothing comes between.
 */

// Amounts are decimal text: the largest is 2^256 - 1. Times are Unix ms. `asset` is '' for the native asset.
const SCHEMA = `
create table if not exists chains (
  caip2 text primary key, base_height integer not null, base_ms integer not null, seen_ms integer not null,
  height integer not null, deposits integer not null
) strict;
create table if not exists accounts (
  caip2 text not null, address text not null, lane text not null, nonce integer not null, delegate text,
  primary key (caip2, address, lane)
) strict, without rowid;
create table if not exists balances (
  caip2 text not null, owner text not null, asset text not null, amount text not null,
  primary key (caip2, owner, asset)
) strict, without rowid;
create table if not exists allowances (
  caip2 text not null, token text not null, owner text not null, spender text not null, amount text not null,
  primary key (caip2, token, owner, spender)
) strict, without rowid;
create table if not exists tokens (
  caip2 text not null, address text not null, decimals integer not null, symbol text not null, program text,
  primary key (caip2, address)
) strict, without rowid;
create table if not exists token_accounts (
  caip2 text not null, address text not null, owner text not null, mint text not null, amount text not null,
  delegate text, delegated_amount text not null default '0',
  primary key (caip2, address)
) strict, without rowid;
create index if not exists token_accounts_by_owner on token_accounts (caip2, owner, mint);
create table if not exists transactions (
  id integer primary key, caip2 text not null, hash text not null, sender text not null, lane text not null,
  nonce integer, plan text not null, state text not null, received_ms integer not null, due_ms integer not null,
  block_number integer, block_seconds integer, fee text, reason text, replaced_by text
) strict;
create unique index if not exists transactions_by_hash on transactions (caip2, hash);
create index if not exists transactions_waiting on transactions (caip2, due_ms) where state = 'pending';
create index if not exists transactions_by_nonce on transactions (caip2, sender, lane, nonce);
create table if not exists transfers (
  position integer primary key autoincrement, caip2 text not null, hash text not null, sender text not null,
  recipient text not null, asset text not null, amount text not null, block_number integer not null,
  block_seconds integer not null
) strict;
create index if not exists transfers_in_order on transfers (caip2, position);
create index if not exists transfers_by_sender on transfers (caip2, sender, position);
create index if not exists transfers_by_recipient on transfers (caip2, recipient, position);
create table if not exists exchange_stocks (
  caip2 text not null, asset text not null, primary key (caip2, asset)
) strict, without rowid;
create table if not exists exchange_orders (
  id text primary key, source_caip2 text not null, source_token text, payer text not null,
  destination_caip2 text not null, destination_token text, recipient text not null, raw_input text not null,
  raw_output text not null, expires_seconds integer not null, state text not null, deposit_hash text, hash text,
  reason text
) strict;
create unique index if not exists exchange_orders_by_deposit on exchange_orders (source_caip2, deposit_hash);
`;

const TABLES = [
  'chains',
  'accounts',
  'balances',
  'allowances',
  'tokens',
  'token_accounts',
  'transactions',
  'transfers',
  'exchange_stocks',
  'exchange_orders',
];

const RESTART = 'delete from sqlite_sequence;';

type Value = string | number | null;

/** Where simulated chains are kept. */
export interface ChainStore {
  all<Row>(sql: string, ...values: Value[]): Row[];
  first<Row>(sql: string, ...values: Value[]): Row | undefined;
  run(sql: string, ...values: Value[]): void;
  /** All of the work or, when it throws, nothing; inside another transaction only this part is undone. */
  atomically<T>(work: () => T): T;
  reset(): void;
  close(): void;
}

/** Opens the store. `file`: a path, or `:memory:`. */
export function openChainStore(file: string): ChainStore {
  const database: Database = new Sqlite(file);
  database.pragma('journal_mode = WAL');
  // NOTE: a killed process loses nothing; only a loss of power may take the last blocks, as a reorganization would.
  database.pragma('synchronous = NORMAL');
  database.exec(SCHEMA);
  const statements = new Map<string, Statement<unknown[], unknown>>();
  const prepare = (sql: string): Statement<unknown[], unknown> => {
    const known = statements.get(sql) ?? database.prepare<unknown[], unknown>(sql);
    statements.set(sql, known);
    return known;
  };
  return {
    all: <Row>(sql: string, ...values: Value[]) => prepare(sql).all(...values) as Row[],
    first: <Row>(sql: string, ...values: Value[]) => prepare(sql).get(...values) as Row | undefined,
    run: (sql, ...values) => void prepare(sql).run(...values),
    atomically: (work) => database.transaction(work).immediate(),
    reset: () =>
      database.transaction(
        // The sequence too: positions of transfers begin anew.
        () => void database.exec(TABLES.map((table) => `delete from ${table};`).join(' ') + RESTART),
      )(),
    close: () => void database.close(),
  };
}
