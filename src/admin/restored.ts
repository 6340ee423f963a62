import type { SqlEntityManager } from '@mikro-orm/sql';
import { connectChains } from '../adapters/chain-rpc/connect.ts';
import { silentLog } from '../adapters/log.ts';
import type { DatabaseConfig, NodesConfig } from '../config/config.ts';
import { StartError } from '../config/start-error.ts';
import { recordChange } from '../domain/access/operators/operator.ts';
import {
  countWaitingDeliveries,
  skipWaitingDeliveries,
  type WaitingDeliveries,
} from '../domain/access/webhooks/due-deliveries.ts';
import {
  acceptAccounts,
  findRestore,
  noteRestore,
  type Restore,
  type RestoredAccount,
  releaseRestore,
} from '../domain/base/restores/restores.ts';
import { knownNonces } from '../domain/money/sending/accounts-after-restore.ts';
import { TransactionEntity } from '../domain/money/transactions/transaction.entity.ts';
import type { Tables } from '../domain/tables.ts';
import type { AnyChain, Chains } from '../ports/chains.ts';
import { commandLine, inTransaction, requireMigrated, withDatabase } from './administration.ts';

/** An account that has sent more transactions than the database contains. */
interface AccountAhead {
  /** The account in CAIP-10 format. */
  readonly account: string;
  readonly wallet_id: string;
  readonly known_nonce: number;
  readonly chain_nonce: number;
}

interface ComparedAccounts {
  readonly ahead: readonly AccountAhead[];
  /**
   * Accounts that could not be compared, because their nodes did not respond. A chain id (CAIP-2) stands for all
   * accounts of a chain that was abandoned.
   */
  readonly unanswered: readonly string[];
  readonly compared: number;
  /**
   * The number of wallets on chains without nonces, by chain type, without archived wallets. An operator has to accept
   * their accounts.
   */
  readonly uncomparable: Readonly<Record<string, number>>;
}

const PAGE = 500;
const AT_ONCE = 16;
/**
 * After this many consecutive calls without a response, a chain is abandoned, because each call waits for a timeout.
 */
const MAX_UNANSWERED = 32;
/** Chain types whose wallets send transactions without nonces. */
const WITHOUT_NONCES = ['solana', 'tron', 'spark'];

/** Compares the nonces of all Ethereum wallets on these chains with those in the database. */
export async function compareAccounts(
  em: SqlEntityManager,
  {
    chains,
    caip2s,
    onProgress,
  }: { chains: Chains; caip2s: readonly string[]; onProgress(count: number): void },
): Promise<ComparedAccounts> {
  const ahead: AccountAhead[] = [];
  const unanswered: string[] = [];
  let compared = 0;
  const evm = caip2s.flatMap((caip2) => {
    const chain = chains.find(caip2);
    return chain?.kind === 'evm' ? { chain, silence: 0 } : [];
  });
  for await (const wallets of pagesOfWallets(em)) {
    const pairs = wallets.flatMap((wallet) => evm.map((asked) => ({ wallet, asked })));
    for (let at = 0; at < pairs.length; at += AT_ONCE) {
      const batch = pairs.slice(at, at + AT_ONCE).filter(({ asked }) => asked.silence < MAX_UNANSWERED);
      const nonces = await Promise.allSettled(
        batch.map(({ wallet, asked }) => asked.chain.nonce(wallet.address)),
      );
      for (const [index, nonce] of nonces.entries()) {
        const { wallet, asked } = batch[index]!;
        const { caip2 } = asked.chain;
        const account = `${caip2}:${wallet.address}`;
        compared += 1;
        asked.silence = nonce.status === 'rejected' ? asked.silence + 1 : 0;
        if (nonce.status === 'rejected') {
          unanswered.push(account);
          if (asked.silence === MAX_UNANSWERED) unanswered.push(caip2);
        } else if (nonce.value > 0n) {
          const known = await knownNonces(em, { caip2, address: wallet.address });
          const chainNonce = Number(nonce.value);
          if (chainNonce > known) {
            ahead.push({ account, wallet_id: wallet.id, known_nonce: known, chain_nonce: chainNonce });
          }
        }
      }
    }
    onProgress(compared);
  }
  return { ahead, unanswered, compared, uncomparable: await countUncomparable(em) };
}

async function* pagesOfWallets(em: SqlEntityManager) {
  for (let after = ''; ; ) {
    const page = await em
      .getKysely<Tables>()
      .selectFrom('wallets')
      .select(['id', 'address'])
      .where('chain_type', '=', 'ethereum')
      .where('id', '>', after)
      .orderBy('id')
      .limit(PAGE)
      .execute();
    if (page.length > 0) yield page;
    if (page.length < PAGE) return;
    after = page.at(-1)!.id;
  }
}

async function countUncomparable(em: SqlEntityManager): Promise<Record<string, number>> {
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('wallets')
    .select('chain_type')
    .select((select) => select.fn.countAll().as('count'))
    .where('chain_type', 'in', WITHOUT_NONCES)
    .where('archived_at_ms', 'is', null)
    .groupBy('chain_type')
    .execute();
  return Object.fromEntries(rows.map(({ chain_type: type, count }) => [type, Number(count)]));
}

/** The maximum number of rows of each kind in the report. Further rows are only counted. */
const MAX_LISTED = 1_000;

interface Listed<Row> {
  readonly rows: readonly Row[];
  /** The number of all rows, including the ones that are not listed. */
  readonly count: number;
}

/** The work that was in progress when the database was backed up, and that may have been finished since. */
interface InDoubt {
  /** Transactions that were signed, but are not final. They may have been broadcast. */
  readonly transactions: Listed<{
    readonly id: string;
    readonly wallet_id: string;
    readonly caip2: string;
    readonly status: string;
    readonly hash: string | null;
    readonly nonce: number | null;
  }>;
  readonly actions: Listed<{ readonly id: string; readonly type: string; readonly wallet_id: string }>;
  /** Intents that were proposed, but not executed. */
  readonly intents: Listed<{ readonly id: string; readonly status: string; readonly operation: string }>;
  /** Executions of automations that were due. */
  readonly executions: Listed<{ readonly id: string; readonly wallet_id: string; readonly caip2: string }>;
  readonly deliveries: WaitingDeliveries;
}

/** Reads the work that was in doubt when the backup was made. Work that began later is not in the database. */
async function readInDoubt(em: SqlEntityManager): Promise<InDoubt> {
  const database = em.getKysely<Tables>();
  const open = database.selectFrom('transactions').where('next_check_at_ms', 'is not', null);
  const acting = database.selectFrom('wallet_actions').where('status', '=', 'pending');
  const proposed = database.selectFrom('intents').where('status', 'in', ['pending', 'processing']);
  const due = database.selectFrom('wallet_automation_executions').where('next_run_at_ms', 'is not', null);
  const count = async (query: { execute(): Promise<{ count: unknown }[]> }): Promise<number> =>
    Number((await query.execute())[0]?.count ?? 0);
  return {
    transactions: {
      rows: (
        await open
          .select(['id', 'wallet_id', 'caip2', 'status', 'transaction_hash', 'user_operation_hash', 'nonce'])
          .orderBy('created_at_ms')
          .limit(MAX_LISTED)
          .execute()
      ).map(({ transaction_hash, user_operation_hash, ...row }) => ({
        ...row,
        nonce: row.nonce === null ? null : Number(row.nonce),
        hash: user_operation_hash ?? transaction_hash,
      })),
      count: await count(open.select((select) => select.fn.countAll().as('count'))),
    },
    actions: {
      rows: await acting
        .select(['id', 'type', 'wallet_id'])
        .orderBy('created_at_ms')
        .limit(MAX_LISTED)
        .execute(),
      count: await count(acting.select((select) => select.fn.countAll().as('count'))),
    },
    intents: {
      rows: await proposed
        .select(['id', 'status', 'operation_id as operation'])
        .orderBy('created_at_ms')
        .limit(MAX_LISTED)
        .execute(),
      count: await count(proposed.select((select) => select.fn.countAll().as('count'))),
    },
    executions: {
      rows: await due
        .select(['id', 'wallet_id', 'caip2'])
        .orderBy('created_at_ms')
        .limit(MAX_LISTED)
        .execute(),
      count: await count(due.select((select) => select.fn.countAll().as('count'))),
    },
    deliveries: await countWaitingDeliveries(em),
  };
}

/** The last restore of a database, as commands print it. */
export interface RestoreView {
  readonly cause: string;
  readonly noticed_at: string;
  /** The time of the newest record in the database. */
  readonly newest_record_at: string | null;
  /** When an operator released the database. Null while changes are refused. */
  readonly released_at: string | null;
}

export interface RestoreReport {
  /** The last restore. Null if the database is not known to be restored. */
  readonly restore: RestoreView | null;
  readonly in_doubt: InDoubt;
  /** The status of the open transactions on their chains, by the id of the transaction. */
  readonly on_chain: Readonly<Record<string, string>>;
  readonly accounts: ComparedAccounts;
}

/** Reports what may be missing in a restored database. Changes nothing. */
export function reportRestore(
  config: DatabaseConfig,
  { rpc }: NodesConfig,
  onProgress: (compared: number) => void,
): Promise<RestoreReport> {
  return withDatabase(config, async (database) => {
    await requireMigrated(database);
    const em = database.orm.em.fork() as SqlEntityManager;
    const chains = connectChains(rpc, silentLog);
    const restore = await findRestore(em);
    const inDoubt = await readInDoubt(em);
    const onChain: Record<string, string> = {};
    for (const { id, caip2, hash } of inDoubt.transactions.rows) {
      onChain[id] = await statusOn(chains.find(caip2), { hash, bytes: await readBytes(em, id) });
    }
    const caip2s = rpc.map(({ caip2 }) => caip2);
    return {
      restore: restore === undefined ? null : viewOf(restore),
      in_doubt: inDoubt,
      on_chain: onChain,
      accounts: await compareAccounts(em, { chains, caip2s, onProgress }),
    };
  });
}

async function readBytes(em: SqlEntityManager, id: string): Promise<Uint8Array> {
  const { signedBytes } = await em.findOneOrFail(TransactionEntity, id, { disableIdentityMap: true });
  return signedBytes;
}

async function statusOn(
  chain: AnyChain | undefined,
  { hash, bytes }: { readonly hash: string | null; readonly bytes: Uint8Array },
): Promise<string> {
  if (chain === undefined || hash === null) return 'no node';
  try {
    return (await chain.statusOf(hash, bytes)).kind;
  } catch {
    return 'no answer';
  }
}

function viewOf(restore: Restore): RestoreView {
  const iso = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
  return {
    cause: restore.cause,
    noticed_at: new Date(restore.noticedAtMs).toISOString(),
    newest_record_at: iso(restore.newestRecordAtMs),
    released_at: iso(restore.releasedAtMs),
  };
}

/**
 * Allows changes again. Accounts for which the chains report more transactions than the database contains stay
 * blocked.
 *
 * @param areDeliveriesSkipped discards the waiting webhooks. Otherwise they are sent with their original ids.
 * @throws ApiError invalid_state if no changes are held.
 */
export function releaseChanges(config: DatabaseConfig, areDeliveriesSkipped: boolean): Promise<RestoreView> {
  return inTransaction(config, async ({ em, notes, nowMs }) => {
    const restore = await releaseRestore(em, nowMs);
    if (areDeliveriesSkipped) await skipWaitingDeliveries(em, nowMs);
    const targets = { deliveries: areDeliveriesSkipped ? 'skipped' : 'sent' };
    await recordChange(
      { em, notes, nowMs, by: commandLine },
      { appId: null, action: 'releaseRestore', targets },
    );
    return viewOf(restore);
  });
}

/** Allows accounts that were blocked after a restore to send again. */
export function acceptRestored(config: DatabaseConfig, accounts: readonly string[] | 'all'): Promise<void> {
  return inTransaction(config, async ({ em, notes, nowMs }) => {
    const parsed = accounts === 'all' ? accounts : accounts.map(accountOf);
    await acceptAccounts(em, parsed, { nowMs, by: 'operator' });
    for (const account of accounts === 'all' ? ['all'] : accounts) {
      const change = { appId: null, action: 'acceptRestoredAccount', targets: { account } };
      await recordChange({ em, notes, nowMs, by: commandLine }, change);
    }
  });
}

/** Records that the database was restored. For copies that servers cannot distinguish from the original. */
export function markRestored(config: DatabaseConfig): Promise<void> {
  return inTransaction(config, async ({ em, notes, ids, nowMs }) => {
    await noteRestore({ em, ids, nowMs }, 'marked');
    await recordChange(
      { em, notes, nowMs, by: commandLine },
      { appId: null, action: 'markRestored', targets: {} },
    );
  });
}

// CAIP-10: namespace:reference:address.
const ACCOUNT = /^([-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}):([-.%a-zA-Z0-9]{1,128})$/;

function accountOf(text: string): RestoredAccount {
  const [, caip2, address] = ACCOUNT.exec(text) ?? [];
  if (caip2 === undefined || address === undefined) {
    throw new StartError(`expected an account such as \`eip155:1:0x52…\`, got \`${text}\``);
  }
  return { caip2, address };
}
