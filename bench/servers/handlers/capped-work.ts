import { createHmac, createSecretKey, hash } from 'node:crypto';
import { Pool, type PoolClient } from 'pg';
import { makeIds, systemEntropy } from '../../../src/adapters/runtime.ts';
import { walletKeyBinding } from '../../../src/domain/base/sealed-keys/sealed-keys.ts';
import { walletView } from '../../../src/domain/wallets/wallets/find-wallet.ts';
import { type WalletRow, walletColumns } from '../../../src/domain/wallets/wallets/wallet.entity.ts';
import { decodeRpcAction } from '../../../src/engine/actions/decode-action.ts';
import {
  type AggregationDefinition,
  type CompiledAggregation,
  compileAggregation,
} from '../../../src/engine/policy/aggregation.ts';
import type { SigningTask } from '../../../src/engine/signing/sign-with-key.ts';
import type {
  CreateAggregationRequest,
  CreatePolicyRequest,
  CreateWalletRequest,
  WalletRpcRequest,
} from '../../../src/generated/schemas.ts';
import { createKeyVault } from '../../../src/keys/key-operations.ts';
import { localMasterKey } from '../../../src/keys/master-keys.ts';
import {
  type NamedStatement,
  type StatementResult,
  sendPipelined,
} from '../../../src/storage/postgres/pipelining.ts';
import { credentials } from '../credentials.ts';
import { walletKeyColumns, walletRow } from './stored-work.ts';
import { statelessWork, type Work } from './work.ts';

const POOL = 10;

/** `insert into <table> (…) values ($1, …)` with the columns in order. */
function insertText(table: string, columns: readonly string[]): string {
  const values = columns.map((_, index) => `$${index + 1}`);
  return `insert into ${table} (${columns.join(', ')}) values (${values.join(', ')})`;
}

const texts = {
  begin: 'begin',
  commit: 'commit',
  rollback: 'rollback',
  wallet: insertText('wallets', walletColumns),
  key: insertText('wallet_keys', walletKeyColumns),
  use: `select ${walletColumns.map((column) => `wallets.${column}`).join(', ')},
    keys.sealed_secret, keys.wrapped_data_key, keys.master_key_id
    from wallets join wallet_keys as keys on keys.wallet_id = wallets.id
    where wallets.app_id = $1 and wallets.id = $2`,
  lock: 'select pg_advisory_xact_lock(hashtextextended($1, 0)) as locked',
  sum: `select coalesce(sum(amount::numeric), 0)::text as sum from aggregation_records
    where aggregation_id = $1 and group_key = $2 and recorded_at_ms > $3`,
  count: insertText('aggregation_records', [
    ...['id', 'aggregation_id', 'group_key', 'amount', 'recorded_at_ms'],
  ]),
  record: insertText('audit_pending', ['app_id', 'recorded_at_ms', 'entry']),
};

function statement(name: keyof typeof texts, ...parameters: unknown[]): NamedStatement {
  return { name, sql: texts[name], parameters };
}

async function send(
  client: PoolClient,
  ...statements: NamedStatement[]
): Promise<readonly StatementResult[]> {
  const { results, error } = await sendPipelined(client, statements);
  if (error !== undefined) throw error;
  return results;
}

interface UseRow extends WalletRow {
  readonly sealed_secret: Uint8Array;
  readonly wrapped_data_key: Uint8Array;
  readonly master_key_id: string;
}

/** What limits a wallet. */
interface Cap {
  readonly aggregationId: string;
  readonly windowMs: number;
  readonly most: bigint;
  readonly aggregation: CompiledAggregation;
}

/** What a request adds to a group of the total. */
interface Counted {
  readonly groupKey: string;
  readonly amount: bigint;
}

/**
 * `eth_signTransaction` on PostgreSQL, for wallets without a policy and under a cap on a running total. Under a cap, the
 * request's contribution is decoded from the bytes, the total is locked, read and judged, and the contribution is
 * committed with the record of the request before the signature is given out. Statements that need no answer in between
 * are sent together, and the requests of one wallet wait here, not for the lock. Policies are kept in memory.
 */
export function cappedWork(url: string): Work {
  const pool = new Pool({ connectionString: url, max: POOL });
  const ids = makeIds(systemEntropy);
  const vault = createKeyVault({
    // Of the database, so that several processes can share it.
    masterKeys: [localMasterKey('bench', hash('sha256', url, 'buffer'), systemEntropy)],
    entropy: systemEntropy,
  });
  const digestKey = createSecretKey(systemEntropy.bytes(32));
  const aggregations = new Map<string, Omit<Cap, 'most'>>();
  const caps = new Map<string, Cap>();
  /** By wallet: the end of the request that locks last. */
  const turns = new Map<string, Promise<unknown>>();

  const recordOf = (walletId: string, body: unknown): NamedStatement => {
    const request = createHmac('sha256', digestKey).update(JSON.stringify(body)).digest('base64');
    const { appId } = credentials;
    const by = { app_id: appId, kind: 'app_secret' };
    const atMs = Date.now();
    const entry = {
      app_id: appId,
      at_ms: atMs,
      by,
      ids: { wallet_id: walletId },
      operation: 'walletRpc',
      request,
    };
    return statement('record', appId, atMs, JSON.stringify(entry));
  };
  const withClient = async <T>(work: (client: PoolClient) => Promise<T>): Promise<T> => {
    const client = await pool.connect();
    try {
      return await work(client);
    } finally {
      client.release();
    }
  };
  const inTurn = <T>(walletId: string, work: () => Promise<T>): Promise<T> => {
    const turn = (turns.get(walletId) ?? Promise.resolve()).then(work);
    turns.set(
      walletId,
      turn.catch(() => undefined),
    );
    return turn;
  };
  /** Requires that the total stays below the cap, and commits the contribution with the record. */
  const count = (
    { aggregationId, windowMs, most }: Cap,
    { groupKey, amount }: Counted,
    record: NamedStatement,
  ) =>
    withClient(async (client) => {
      const nowMs = Date.now();
      const read = await send(
        client,
        statement('begin'),
        statement('lock', `${aggregationId}:${groupKey}`),
        statement('sum', aggregationId, groupKey, nowMs - windowMs),
      );
      const [{ sum }] = read[2]!.rows as [{ sum: string }];
      if (BigInt(sum) + amount > most) {
        await send(client, statement('rollback'));
        throw new Error('the cap is exceeded');
      }
      const counted = statement('count', ids.cuid2(), aggregationId, groupKey, String(amount), nowMs);
      await send(client, counted, record, statement('commit'));
    });

  return {
    listWallets: statelessWork.listWallets as () => unknown,
    createAggregation({ body }) {
      const { window, ...terms } = body as CreateAggregationRequest;
      const aggregation = compileAggregation(terms as unknown as AggregationDefinition);
      const id = ids.cuid2();
      aggregations.set(id, { aggregationId: id, windowMs: window.seconds * 1000, aggregation });
      return { id };
    },
    createPolicy({ body }) {
      const [condition] = (body as CreatePolicyRequest).rules[0]?.conditions ?? [];
      const id = ids.cuid2();
      const { field, value } = condition as unknown as { field: string; value: string };
      const aggregation = aggregations.get(field.replace('aggregation.', ''));
      if (aggregation !== undefined) caps.set(id, { ...aggregation, most: BigInt(value) });
      return { id };
    },
    async createWallet({ body }) {
      const { chain_type: chainType, policy_ids: [policyId = null] = [] } = body as CreateWalletRequest;
      const id = ids.cuid2();
      const binding = walletKeyBinding({ id, app_id: credentials.appId, chain_type: chainType });
      const { sealed, address, publicKey, ...key } = await vault.createWalletKey(binding);
      const wallet = { ...walletRow({ id, chainType, address, publicKey }), policy_id: policyId };
      const keyValues = [
        ...[id, sealed.sealedSecret, sealed.wrappedDataKey, sealed.masterKeyId],
        ...[key.entropyType, key.derivationPath, key.walletIndex],
      ];
      await withClient((client) =>
        send(
          client,
          ...[statement('begin'), statement('wallet', ...walletColumns.map((column) => wallet[column]))],
          ...[statement('key', ...keyValues), statement('commit')],
        ),
      );
      return walletView(wallet);
    },
    async getWallet({ path }) {
      const asked = statement('use', credentials.appId, path.wallet_id);
      const [read] = await withClient((client) => send(client, asked));
      return walletView(read?.rows[0] as UseRow);
    },
    async walletRpc({ path, body }) {
      const request = body as WalletRpcRequest & { params: object };
      const { method, params } = request;
      const asked = statement('use', credentials.appId, path.wallet_id);
      const [read] = await withClient((client) => send(client, asked));
      const wallet = read?.rows[0] as UseRow;
      const action = await decodeRpcAction(request);
      const cap = wallet.policy_id === null ? undefined : caps.get(wallet.policy_id);
      const facts = { nowMs: Date.now(), inConditionSet: () => undefined, aggregation: () => undefined };
      const [counted] = cap?.aggregation.contributions(action, facts) ?? [];
      const sealed = {
        sealedSecret: wallet.sealed_secret,
        wrappedDataKey: wallet.wrapped_data_key,
        masterKeyId: wallet.master_key_id,
      };
      const task = { method, params } as unknown as SigningTask<'eth_signTransaction'>;
      const data = await vault.signWithWallet(sealed, walletKeyBinding(wallet), task);
      const record = recordOf(wallet.id, body);
      if (cap === undefined) {
        await withClient((client) => send(client, record));
      } else {
        if (counted?.amount === undefined) throw new Error('the contribution cannot be read');
        const contribution = { groupKey: `${wallet.id}:${counted.groupKey}`, amount: counted.amount };
        await inTurn(wallet.id, () => count(cap, contribution, record));
      }
      return { method, data };
    },
  };
}
