import type { SqlEntityManager } from '@mikro-orm/sql';
import { connectChains } from '../../adapters/chain-rpc/connect.ts';
import { silentLog } from '../../adapters/log.ts';
import type { DatabaseConfig, NodesConfig } from '../../config/config.ts';
import { StartError } from '../../config/start-error.ts';
import { recordChange } from '../../domain/access/operators/operator.ts';
import { skipWaitingDeliveries } from '../../domain/access/webhooks/due-deliveries.ts';
import {
  acceptAccounts,
  findRestore,
  noteRestore,
  type Restore,
  type RestoredAccount,
  releaseRestore,
} from '../../domain/base/restores/restores.ts';
import { TransactionEntity } from '../../domain/money/transactions/transaction.entity.ts';
import type { AnyChain } from '../../ports/chains.ts';
import { commandLine, inTransaction, requireMigrated, withDatabase } from '../administration.ts';
import { type ComparedAccounts, compareAccounts } from './compare-accounts.ts';
import { type InDoubt, readInDoubt } from './in-doubt.ts';

/** The last restore of a database, as commands print it. */
export interface RestoreView {
  readonly cause: string;
  readonly noticed_at: string;
  /** The time of the newest record in the database. */
  readonly newest_record_at: string | null;
  /** Null while changes are held. */
  readonly released_at: string | null;
}

export interface RestoreReport {
  /** Null if the database is not known to be restored. */
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

/** Allows accounts in doubt to send again. */
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

/** Records that the database was restored, for copies that servers cannot distinguish from the original. */
export function markRestored(config: DatabaseConfig): Promise<void> {
  return inTransaction(config, async ({ em, notes, ids, nowMs }) => {
    await noteRestore({ em, ids, nowMs }, 'marked');
    await recordChange(
      { em, notes, nowMs, by: commandLine },
      { appId: null, action: 'markRestored', targets: {} },
    );
  });
}

// The CAIP-10 format is namespace:reference:address.
const ACCOUNT = /^([-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}):([-.%a-zA-Z0-9]{1,128})$/;

function accountOf(text: string): RestoredAccount {
  const [, caip2, address] = ACCOUNT.exec(text) ?? [];
  if (caip2 === undefined || address === undefined) {
    throw new StartError(`expected an account such as \`eip155:1:0x52…\`, got \`${text}\``);
  }
  return { caip2, address };
}
