import type { SqlEntityManager } from '@mikro-orm/sql';
import type { KeyVault } from '../../../ports/key-vault.ts';
import { masterKeyCheckBinding } from '../../base/sealed-keys/seal-bindings.ts';
import type { Tables } from '../../tables.ts';

const KNOWN_VALUE = 'custos master key check';

/**
 * Compares the vault's master keys with those that the stored secrets are sealed under, by a known value that the
 * first start under a key seals and stores.
 *
 * Called inside a transaction before requests are served. Rejects with the vault's own error, which names the
 * master key, when a key is missing or has the right name and the wrong bytes.
 */
export async function checkMasterKey(em: SqlEntityManager, vault: KeyVault): Promise<void> {
  const database = em.getKysely<Tables>();
  const checks = await database
    .selectFrom('master_key_checks')
    .select(['master_key_id', 'sealed_secret', 'wrapped_data_key'])
    .execute();
  for (const check of checks) {
    const sealed = {
      sealedSecret: check.sealed_secret,
      wrappedDataKey: check.wrapped_data_key,
      masterKeyId: check.master_key_id,
    };
    await vault.withSecret(sealed, masterKeyCheckBinding, () => undefined);
  }
  const sealed = await vault.seal(Buffer.from(KNOWN_VALUE, 'utf8'), masterKeyCheckBinding);
  // Several processes may start for the first time concurrently.
  await database
    .insertInto('master_key_checks')
    .values({
      master_key_id: sealed.masterKeyId,
      sealed_secret: sealed.sealedSecret,
      wrapped_data_key: sealed.wrappedDataKey,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}
