import { createHmac, createSecretKey } from 'node:crypto';
import { join } from 'node:path';
import type { Database } from 'better-sqlite3';
import Sqlite from 'better-sqlite3';
import { makeIds, systemEntropy } from '../../../src/adapters/runtime.ts';
import { walletKeyBinding } from '../../../src/domain/base/sealed-keys/sealed-keys.ts';
import { walletView } from '../../../src/domain/wallets/wallets/find-wallet.ts';
import { type WalletRow, walletColumns } from '../../../src/domain/wallets/wallets/wallet.entity.ts';
import type { PersonalSignParams } from '../../../src/engine/signing/ethereum/signer.ts';
import type { CreateWalletRequest, WalletRpcRequest } from '../../../src/generated/schemas.ts';
import { createKeyStore } from '../../../src/keys/key-operations.ts';
import { localMasterKey } from '../../../src/keys/master-keys.ts';
import { migrations } from '../../../src/storage/migrations/migrations.ts';
import { createCommitSync } from '../../../src/storage/sqlite/commit-sync.ts';
import { upgradeSqlite } from '../../../src/storage/sqlite/upgrade-sqlite.ts';
import { credentials } from '../credentials.ts';
import { temporaryFolder } from '../launch.ts';
import { quorumWork } from './signed-work.ts';
import { statelessWork, type Work } from './work.ts';

/** Opens a SQLite file with the pragmas of the sandbox; creates the schema in a new file. */
export function openSandboxFile(file: string): Database {
  const database = new Sqlite(file);
  database.pragma('journal_mode = WAL');
  database.pragma('synchronous = FULL');
  database.pragma('foreign_keys = ON');
  upgradeSqlite(
    database,
    migrations.map(({ sqlite }) => sqlite),
  );
  return database;
}

/** `insert into <table> (…) values (…)` with the columns in order. */
export function insertStatement(table: string, columns: readonly string[]): string {
  return `insert into ${table} (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`;
}

export const walletKeyColumns = [
  'wallet_id',
  'sealed_secret',
  'wrapped_data_key',
  'master_key_id',
  'entropy_type',
  'derivation_path',
  'wallet_index',
] as const;

interface KeyRow {
  sealed_secret: Uint8Array;
  wrapped_data_key: Uint8Array;
  master_key_id: string;
}

/**
 * The wallet operations with prepared statements only. Keys are created, sealed and used by the same functions as in
 * Custos, every new wallet and every use of a key is recorded in its transaction, and commits are on the disk before
 * they are answered, so that only the rest differs.
 */
export function storedWork(): Work {
  const file = join(temporaryFolder(), 'bare.sqlite');
  const database = openSandboxFile(file);
  // As in Custos, one sync for all that have committed meanwhile.
  database.pragma('synchronous = NORMAL');
  const sync = createCommitSync(`${file}-wal`);
  const ids = makeIds(systemEntropy);
  const keyStore = createKeyStore({
    masterKeys: [localMasterKey('bench', systemEntropy.bytes(32), systemEntropy)],
    entropy: systemEntropy,
  });
  const columns = walletColumns.map((column) => `wallets.${column}`).join(', ');
  const selectWallet = database.prepare(`select ${columns} from wallets where app_id = ? and id = ?`);
  const selectKey = database.prepare(
    'select sealed_secret, wrapped_data_key, master_key_id from wallet_keys where wallet_id = ?',
  );
  const insertWallet = database.prepare(insertStatement('wallets', walletColumns));
  const insertKey = database.prepare(insertStatement('wallet_keys', walletKeyColumns));
  const insertRecord = database.prepare(
    'insert into audit_pending (app_id, recorded_at_ms, entry) values (?, ?, ?)',
  );
  const digestKey = createSecretKey(systemEntropy.bytes(32));
  const record = (
    operation: string,
    walletId: string,
    { body, signers }: { readonly body: unknown; readonly signers?: readonly string[] | undefined },
  ): void => {
    const request = createHmac('sha256', digestKey).update(JSON.stringify(body)).digest('base64');
    const { appId } = credentials;
    const by = { app_id: appId, kind: 'app_secret', signers };
    const entry = { app_id: appId, at_ms: Date.now(), by, ids: { wallet_id: walletId }, operation, request };
    insertRecord.run(appId, entry.at_ms, JSON.stringify(entry));
  };
  const insertAll = database.transaction((wallet: WalletRow, key: readonly unknown[], body: unknown) => {
    insertWallet.run(walletColumns.map((column) => wallet[column]));
    insertKey.run(key);
    record('createWallet', wallet.id, { body });
  });
  const quorums = quorumWork(database, ids);
  const findWallet = (id: string | undefined) => selectWallet.get(credentials.appId, id) as WalletRow;

  return {
    listWallets: statelessWork.listWallets as () => unknown,
    getWallet: ({ path }) => walletView(findWallet(path.wallet_id)),
    createKeyQuorum: quorums.createKeyQuorum,
    createWallet: async ({ body }) => {
      const { chain_type: chainType, owner_id: ownerId = null } = body as CreateWalletRequest;
      const id = ids.cuid2();
      const binding = walletKeyBinding({ id, app_id: credentials.appId, chain_type: chainType });
      const { sealed, ...key } = await keyStore.createWalletKey(binding, undefined);
      const { address, publicKey } = key;
      const wallet = { ...walletRow({ id, chainType, address, publicKey }), owner_id: ownerId };
      const keyRow = [
        ...[wallet.id, sealed.sealedSecret, sealed.wrappedDataKey, sealed.masterKeyId],
        ...[key.entropyType, key.derivationPath, key.walletIndex],
      ];
      insertAll.immediate(wallet, keyRow, body);
      await sync.flushed();
      return walletView(wallet);
    },
    walletRpc: async (input) => {
      const { path, body } = input;
      const { method, params } = body as WalletRpcRequest & { params: PersonalSignParams };
      const wallet = findWallet(path.wallet_id);
      const signers = wallet.owner_id === null ? undefined : quorums.signedBy(wallet.owner_id, input);
      const key = selectKey.get(wallet.id) as KeyRow;
      const sealed = {
        sealedSecret: key.sealed_secret,
        wrappedDataKey: key.wrapped_data_key,
        masterKeyId: key.master_key_id,
      };
      const task = { method: 'personal_sign', params } as const;
      const data = await keyStore.signWithWallet(sealed, walletKeyBinding(wallet), task, undefined);
      record('walletRpc', wallet.id, { body, signers });
      await sync.flushed();
      return { method, data };
    },
  };
}

/** A row with only the values that every wallet has. */
export function walletRow(
  {
    id,
    chainType,
    address,
    publicKey,
  }: { id: string; chainType: string; address: string; publicKey: string | null },
  createdAtMs = Date.now(),
): WalletRow {
  return {
    id,
    app_id: credentials.appId,
    chain_type: chainType,
    address,
    public_key: publicKey,
    display_name: null,
    external_id: null,
    owner_id: null,
    policy_id: null,
    additional_signers: '[]',
    entity_type: null,
    entity_id: null,
    entity_assignment_id: null,
    entity_assigned_at_ms: null,
    custody_provider: null,
    custody_provider_user_id: null,
    custody_chain: null,
    created_at_ms: createdAtMs,
    exported_at_ms: null,
    imported_at_ms: null,
    archived_at_ms: null,
  };
}
