import type { SqlEntityManager } from '@mikro-orm/sql';
import type { KeyVault } from '../../../ports/key-vault.ts';
import { masterKeyCheckBinding } from '../../base/sealed-keys/seal-bindings.ts';
import { MasterKeyCheckEntity } from './master-key-check.entity.ts';

const KNOWN_VALUE = 'custos master key check';

/**
 * Compares the vault's master keys with those that the stored secrets are sealed under, by a known value that the
 * first start under a key seals and stores.
 *
 * Called outside of transactions, because the vault is asked, before requests are served. Rejects with the vault's own error, which names the
 * master key, when a key is missing or has the right name and the wrong bytes.
 */
export async function checkMasterKey(em: SqlEntityManager, vault: KeyVault): Promise<void> {
  for (const check of await em.find(MasterKeyCheckEntity, {})) {
    await vault.open(check, masterKeyCheckBinding);
  }
  const sealed = await vault.seal(Buffer.from(KNOWN_VALUE, 'utf8'), masterKeyCheckBinding);
  const check = {
    masterKeyId: sealed.masterKeyId,
    sealedSecret: Buffer.from(sealed.sealedSecret),
    wrappedDataKey: Buffer.from(sealed.wrappedDataKey),
  };
  // Several processes may start for the first time concurrently.
  await em.upsert(MasterKeyCheckEntity, check, { onConflictAction: 'ignore' });
}
