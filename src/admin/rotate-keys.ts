import type { SqlEntityManager } from '@mikro-orm/sql';
import { systemClock } from '../adapters/clock.ts';
import { systemEntropy } from '../adapters/entropy.ts';
import { productionVault } from '../adapters/vault/production-vault.ts';
import type { ServeConfig } from '../config.ts';
import { recordChange } from '../domain/access/operators/record-operator-action.ts';
import { rotateSealedKeys } from '../domain/base/sealed-keys/rotate-sealed-keys.ts';
import { entities } from '../domain/tables.ts';
import { openDatabase } from '../storage/open-database.ts';
import { commandLine } from './administration.ts';
import { requireMasterKey } from './require-master-key.ts';

/** Re-wraps every sealed key under the current master key and returns their number. Throws StartError. */
export async function rotateKeys(
  config: Pick<ServeConfig, 'databaseUrl' | 'masterKeys'>,
  onProgress: (rewrapped: number) => void,
): Promise<number> {
  const vault = productionVault(config.masterKeys, systemEntropy);
  const database = await openDatabase(entities, { kind: 'postgres', url: config.databaseUrl, poolSize: 1 });
  try {
    const advice = 'add the key they were sealed under to CUSTOS_PREVIOUS_MASTER_KEYS';
    await requireMasterKey(database, vault, advice);
    return await rotateSealedKeys(
      vault,
      (work) => database.orm.em.fork().transactional((em) => work(em as SqlEntityManager)),
      {
        onProgress,
        record(em, moved) {
          const change = { action: 'rotateMasterKey', targets: { rewrapped: String(moved) } };
          const context = { em, nowMs: systemClock.now(), by: commandLine };
          return recordChange(context, { ...change, appId: null });
        },
      },
    );
  } finally {
    await database.close();
  }
}
