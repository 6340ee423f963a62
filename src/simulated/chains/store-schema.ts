// Amounts are decimal text: the largest is 2^256 - 1. Times are Unix ms. `asset` is '' for the native asset.
// NOTE: `if not exists` is for files from before steps were counted; later steps do without.
const initial = `
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

/** What leads from one version of the store to the next, oldest first. A released step is never changed. */
export const chainStoreSteps: readonly string[] = [initial];
