import Sqlite, { type Database, type Statement } from 'better-sqlite3';
import { imageOf, replaceContent } from '../../../storage/sqlite/images.ts';
import { upgradeSqlite } from '../../../storage/sqlite/upgrade-sqlite.ts';
import { chainStoreSteps } from './store-schema.ts';

/**
 * Simulated chains play the role of systems outside the server. So they use a file of their own with its own
 * transactions, and never wait for transactions of the server's database. All calls are synchronous, so transactions
 * do not interleave.
 */

const TABLES = [
  'block_times',
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
  'fiat_customers',
  'fiat_bank_accounts',
  'fiat_virtual_accounts',
  'fiat_deposits',
  'fiat_deposit_reports',
  'fiat_payouts',
  'fiat_payout_deposits',
  'fiat_books',
  'fiat_stocks',
  'contract_state',
  'abis',
  'evm_code',
  'evm_receipts',
  'evm_storage',
  'prices',
  'reorganizations',
  'solana_accounts',
  'solana_mentions',
  'solana_receipts',
  'issuer_cards',
  'issuer_payments',
];

const RESTART = 'delete from sqlite_sequence;';

type Value = string | number | null | Uint8Array;

/** The store of simulated chains. */
export interface ChainStore {
  all<Row>(sql: string, ...values: Value[]): Row[];
  first<Row>(sql: string, ...values: Value[]): Row | undefined;
  run(sql: string, ...values: Value[]): void;
  /** Runs statements that are executed too rarely to be prepared. */
  exec(sql: string): void;
  /** Runs `work` in a transaction and rolls it back if `work` throws. Nested calls use savepoints. */
  atomically<T>(work: () => T): T;
  reset(): void;
  /** Returns a number that changes whenever the whole content is replaced. */
  content(): number;
  /** Returns the whole content. */
  image(): Buffer;
  /** Replaces the content with that of an image. */
  load(image: Buffer): Promise<void>;
  close(): void;
}

/**
 * Opens the store, and migrates an older file to the newest schema.
 *
 * @param file a path, or `:memory:`.
 * @param image the initial content of a store in memory.
 * @throws StorageVersionError for a file of a newer version.
 */
export function openChainStore(file: string, image?: Buffer): ChainStore {
  let database = open(image ?? file);
  upgradeSqlite(database, chainStoreSteps);
  // The function is created once, because creating it takes as long as a short transaction.
  let transaction = transactionOn(database);
  let content = 0;
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
    exec: (sql) => void database.exec(sql),
    atomically: <T>(work: () => T) => transaction.immediate(work) as T,
    reset() {
      dropTriggers(database);
      database.transaction(
        // Also resets the sequence, so that the positions of transfers restart at 1.
        () => void database.exec(TABLES.map((table) => `delete from ${table};`).join(' ') + RESTART),
      )();
      content += 1;
    },
    content: () => content,
    image: () => imageOf(database),
    async load(image) {
      dropTriggers(database);
      content += 1;
      if (file !== ':memory:') return replaceContent(file, image);
      const before = database;
      database = open(image);
      transaction = transactionOn(database);
      statements.clear();
      before.close();
    },
    close: () => void database.close(),
  };
}

/**
 * Drops the triggers that record changes (see `store-history.ts`), because the replacement of the whole content
 * cannot be undone.
 */
function dropTriggers(database: Database): void {
  const triggers = database.prepare<unknown[], { name: string }>(
    "select name from temp.sqlite_master where type = 'trigger'",
  );
  for (const { name } of triggers.all()) database.exec(`drop trigger temp.${name}`);
}

const transactionOn = (database: Database) => database.transaction((work: () => unknown) => work());

function open(content: string | Buffer): Database {
  const database = new Sqlite(content);
  database.pragma('journal_mode = WAL');
  // NOTE: if the process is killed, nothing is lost. A power failure may lose the latest blocks, which looks like a
  // reorganization.
  database.pragma('synchronous = NORMAL');
  return database;
}
