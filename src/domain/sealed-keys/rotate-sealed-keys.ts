import type { SqlEntityManager } from '@mikro-orm/sql';
import type { KeyVault, SealBinding, SealedKey } from '../../services.ts';
import type { Tables } from '../../storage/entities.ts';

/** A vault that can move a data key under the current master key. */
export interface RewrappingVault extends KeyVault {
  readonly currentMasterKeyId: string;
  rewrap(sealed: SealedKey, binding: SealBinding): Promise<SealedKey>;
}

type SealedTable = 'wallet_keys' | 'wallet_imports' | 'app_signing_keys';

interface SealedRow extends SealedKey {
  readonly id: string;
  readonly binding: SealBinding;
}

/** Every table that holds sealed secrets. A new one adds its line here. */
const tables: readonly SealedTable[] = ['wallet_keys', 'wallet_imports', 'app_signing_keys'];

/**
 * Moves up to `limit` data keys of one table under the current master key, in the transaction of `em`. A row is
 * only written while it is still wrapped as it was read, so that the server may run beside it.
 *
 * Result: how many were moved; 0 when none is left.
 */
async function rotateBatch(
  em: SqlEntityManager,
  vault: RewrappingVault,
  table: SealedTable,
  limit: number,
): Promise<number> {
  const rows = await readers[table](em, vault.currentMasterKeyId, limit);
  for (const row of rows) {
    const moved = await vault.rewrap(row, row.binding);
    await em
      .getKysely<Tables>()
      .updateTable(table)
      .set({ wrapped_data_key: Buffer.from(moved.wrappedDataKey), master_key_id: moved.masterKeyId })
      .where(table === 'wallet_keys' ? 'wallet_id' : 'id', '=', row.id)
      .where('master_key_id', '=', row.masterKeyId)
      .execute();
  }
  return rows.length;
}

const BATCH = 100;

/**
 * Moves every data key under the vault's current master key, batch by batch; may be stopped and begun again.
 *
 * @param inTransaction runs one batch in a transaction of its own.
 * @param onProgress told how many keys were moved so far.
 */
export async function rotateSealedKeys(
  vault: RewrappingVault,
  inTransaction: <T>(work: (em: SqlEntityManager) => Promise<T>) => Promise<T>,
  onProgress: (moved: number) => void,
): Promise<number> {
  let moved = 0;
  for (const table of tables) {
    for (;;) {
      const count = await inTransaction((em) => rotateBatch(em, vault, table, BATCH));
      if (count === 0) break;
      moved += count;
      onProgress(moved);
    }
  }
  // Keys that nothing is wrapped under any more need not be configured at the next start.
  await inTransaction((em) =>
    em
      .getKysely<Tables>()
      .deleteFrom('master_key_checks')
      .where('master_key_id', '<>', vault.currentMasterKeyId)
      .execute(),
  );
  return moved;
}

type Reader = (em: SqlEntityManager, currentId: string, limit: number) => Promise<SealedRow[]>;

interface StoredSeal {
  sealed_secret: Uint8Array;
  wrapped_data_key: Uint8Array;
  master_key_id: string;
}

function sealedOf(row: StoredSeal): SealedKey {
  return {
    sealedSecret: row.sealed_secret,
    wrappedDataKey: row.wrapped_data_key,
    masterKeyId: row.master_key_id,
  };
}

const readers: Readonly<Record<SealedTable, Reader>> = {
  async wallet_keys(em, currentId, limit) {
    const rows = await em
      .getKysely<Tables>()
      .selectFrom('wallet_keys as key')
      .innerJoin('wallets as wallet', 'wallet.id', 'key.wallet_id')
      .select(['key.wallet_id', 'key.sealed_secret', 'key.wrapped_data_key', 'key.master_key_id'])
      .select(['wallet.app_id', 'wallet.chain_type'])
      .where('key.master_key_id', '<>', currentId)
      .limit(limit)
      .execute();
    return rows.map((row) => ({
      ...sealedOf(row),
      id: row.wallet_id,
      binding: { walletId: row.wallet_id, appId: row.app_id, chainType: row.chain_type },
    }));
  },
  async wallet_imports(em, currentId, limit) {
    const rows = await em
      .getKysely<Tables>()
      .selectFrom('wallet_imports')
      .select(['id', 'app_id', 'chain_type', 'sealed_secret', 'wrapped_data_key', 'master_key_id'])
      .where('master_key_id', '<>', currentId)
      .limit(limit)
      .execute();
    return rows.map((row) => ({
      ...sealedOf(row),
      id: row.id,
      binding: { walletId: row.id, appId: row.app_id, chainType: row.chain_type },
    }));
  },
  async app_signing_keys(em, currentId, limit) {
    const rows = await em
      .getKysely<Tables>()
      .selectFrom('app_signing_keys')
      .select(['id', 'app_id', 'sealed_secret', 'wrapped_data_key', 'master_key_id'])
      .where('master_key_id', '<>', currentId)
      .limit(limit)
      .execute();
    return rows.map((row) => ({
      ...sealedOf(row),
      id: row.id,
      binding: signingKeyBinding(row.id, row.app_id),
    }));
  },
};

/** What the sealed half of an app's signing key is bound to. */
export function signingKeyBinding(kid: string, appId: string): SealBinding {
  return { walletId: kid, appId, chainType: 'app-signing-key' };
}
