// Amounts are decimal strings, because the largest is 2^256 - 1. Times are Unix ms. `asset` is '' for the native
// asset. NOTE: `if not exists` is for files that were created before versions of the schema were counted. Later steps
// do not need it.
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

// Personal data is never stored here. The tables contain only the names of the submitted fields and the resulting
// outcome.
const fiat = `
create table fiat_customers (
  environment text not null, id text not null, reference text not null, kind text not null, token text not null,
  terms text not null, verification text not null, standing text not null, reasons text not null,
  requirements text not null, endorsements text not null, provided text not null, outcome text not null,
  decides_ms integer, redirect_uri text,
  primary key (environment, id)
) strict, without rowid;
create unique index fiat_customers_by_reference on fiat_customers (environment, reference);
create unique index fiat_customers_by_token on fiat_customers (token);
create table fiat_bank_accounts (
  environment text not null, id text not null, customer_id text not null, request_key text not null,
  last_4 text not null, is_removed integer not null,
  primary key (environment, id)
) strict, without rowid;
create unique index fiat_bank_accounts_by_key on fiat_bank_accounts (environment, request_key);
create table fiat_virtual_accounts (
  number integer primary key autoincrement, environment text not null, id text not null, customer_id text not null,
  request_key text not null, currency text not null, caip2 text not null, asset text not null, token text,
  decimals integer not null, address text not null, status text not null
) strict;
create unique index fiat_virtual_accounts_by_id on fiat_virtual_accounts (environment, id);
create unique index fiat_virtual_accounts_by_key on fiat_virtual_accounts (environment, request_key);
create table fiat_deposits (
  environment text not null, id text not null, account_id text not null, reference text not null,
  currency text not null, amount text not null, rail text not null, sender text, outcome text not null,
  state text not null,
  due_ms integer, reason_code text, reason text,
  primary key (environment, id)
) strict, without rowid;
create unique index fiat_deposits_by_reference on fiat_deposits (environment, account_id, reference);
create index fiat_deposits_due on fiat_deposits (environment, due_ms) where due_ms is not null;
create table fiat_deposit_reports (
  position integer primary key autoincrement, environment text not null, deposit_id text not null,
  state text not null, at_ms integer not null, hash text, raw_output text
) strict;
create index fiat_deposit_reports_in_order on fiat_deposit_reports (environment, position);
create table fiat_payouts (
  environment text not null, id text not null, request_key text not null, bank_account_id text not null,
  caip2 text not null, token text, payer text not null, raw_amount text not null, address text not null,
  currency text not null, amount text not null, expires_seconds integer not null, outcome text not null,
  state text not null, due_ms integer, deposit_hash text, refund_hash text, reason text,
  primary key (environment, id)
) strict, without rowid;
create unique index fiat_payouts_by_key on fiat_payouts (environment, request_key);
create index fiat_payouts_by_address on fiat_payouts (caip2, address);
create table fiat_payout_deposits (
  caip2 text not null, hash text not null, address text not null, refund_hash text,
  primary key (caip2, hash, address)
) strict, without rowid;
create table fiat_books (
  environment text not null, currency text not null, account text not null, amount text not null,
  primary key (environment, currency, account)
) strict, without rowid;
create table fiat_stocks (
  environment text not null, caip2 text not null, asset text not null,
  primary key (environment, caip2, asset)
) strict, without rowid;
`;

const contractState = `
create table contract_state (
  caip2 text not null, contract text not null, key text not null, value text not null,
  primary key (caip2, contract, key)
) strict, without rowid;
create index contract_state_by_key on contract_state (caip2, key, contract);
`;

const movedPrices = `
create table prices (symbol text primary key, usd text not null) strict, without rowid;
`;

// Card numbers and PINs are not stored. Numbers are derived from the issuer's secret; a PIN is stored as a keyed
// hash.
const cards = `
create table issuer_cards (
  environment text not null, id text not null, request_key text not null, customer_id text not null,
  caip2 text not null, token text not null, decimals integer not null, address text not null, status text not null,
  reason text, last4 text not null, exp_month integer not null, exp_year integer not null, pin_mac text,
  wrong_pins integer not null, revision integer not null, successor text,
  primary key (environment, id)
) strict, without rowid;
create unique index issuer_cards_by_key on issuer_cards (environment, request_key);
create table issuer_payments (
  position integer primary key autoincrement, environment text not null, id text not null, card_id text not null,
  kind text not null, parent_id text, reference text not null, status text not null, cents text not null,
  merchant text, reason text, created_ms integer not null, posted_ms integer, expires_ms integer, hash text
) strict;
create unique index issuer_payments_by_id on issuer_payments (id);
create unique index issuer_payments_by_reference on issuer_payments (environment, card_id, kind, reference);
create index issuer_payments_in_order on issuer_payments (environment, card_id, position);
create index issuer_payments_posted on issuer_payments (environment, card_id, posted_ms) where posted_ms is not null;
create index issuer_payments_of_parent on issuer_payments (parent_id) where parent_id is not null;
create index issuer_payments_due on issuer_payments (environment, expires_ms) where expires_ms is not null;
`;

// The number of later blocks after which the block of a pending transaction is abandoned.
const reorganizations = `
alter table transactions add column abandoned_after integer;
`;

// The app's fee: a percentage of each deposit, and a fixed sum for a payout. The `amount` of a payout does not
// include it.
const developerFees = `
alter table fiat_virtual_accounts add column developer_fee_percent text not null default '0';
alter table fiat_payouts add column developer_fee text not null default '0.00';
`;

// Bytecode in hex. Slots and words are 64 hex digits, and a word of zero is not stored.
const bytecode = `
create table evm_code (
  caip2 text not null, address text not null, code text not null,
  primary key (caip2, address)
) strict, without rowid;
create table evm_storage (
  caip2 text not null, address text not null, slot text not null, word text not null,
  primary key (caip2, address, slot)
) strict, without rowid;
create table evm_receipts (
  caip2 text not null, hash text not null, block_number integer not null, position integer not null,
  first_log integer not null, logs integer not null, content text not null,
  primary key (caip2, hash)
) strict, without rowid;
create index evm_receipts_by_block on evm_receipts (caip2, block_number, position);
`;

// Each reorganization replaces the blocks from a number on. `block_times` lists the blocks whose time differs from
// the schedule, with the due time of the next block. `next_seconds` is the time of the next block, if a client has
// set it. `reads` is the state that a transaction read, so that it can be executed again.
const reorganizedBlocks = `
create table reorganizations (
  id integer primary key autoincrement, caip2 text not null, from_block integer not null
) strict;
create index reorganizations_by_block on reorganizations (caip2, from_block);
create table block_times (
  caip2 text not null, number integer not null, seconds integer not null, next_ms integer not null,
  primary key (caip2, number)
) strict, without rowid;
alter table chains add column next_seconds integer;
alter table evm_receipts add column reads text;
`;

const abis = `
create table abis (name text primary key, address text, items text not null) strict, without rowid;
`;

// The data and the owning program of accounts. Their lamports are balances. `solana_receipts` are the effects of
// transactions, in the order of their block. `solana_mentions` are the addresses that transactions name.
const solana = `
create table solana_accounts (
  caip2 text not null, address text not null, owner text not null, executable integer not null, data blob not null,
  primary key (caip2, address)
) strict;
create index solana_accounts_by_owner on solana_accounts (caip2, owner, address);
create index token_accounts_by_mint on token_accounts (caip2, mint);
create table solana_receipts (
  caip2 text not null, hash text not null, block_number integer not null, position integer not null,
  content text not null,
  primary key (caip2, hash)
) strict, without rowid;
create unique index solana_receipts_by_block on solana_receipts (caip2, block_number, position);
create table solana_mentions (
  caip2 text not null, address text not null, block_number integer not null, position integer not null,
  hash text not null,
  primary key (caip2, address, block_number, position)
) strict, without rowid;
`;

/** The migrations of the store, oldest first. A released migration is never changed. */
export const chainStoreSteps: readonly string[] = [
  initial,
  fiat,
  contractState,
  movedPrices,
  cards,
  reorganizations,
  developerFees,
  bytecode,
  reorganizedBlocks,
  abis,
  solana,
];
