import { hash } from 'node:crypto';
import type { ServeConfig } from '../config.ts';
import type { Entropy } from '../ports/entropy.ts';
import { localMasterKey } from './master-key-local.ts';
import { transitMasterKey } from './master-key-transit.ts';
import { createMasterKeyVault, type MasterKey, type MasterKeyVault } from './vault-master-key.ts';

/** The vault of production: a management service's key or a local one is current, earlier local keys still open. */
export function productionVault(
  { local, transit }: ServeConfig['masterKeys'],
  entropy: Entropy,
): MasterKeyVault {
  // Named by its digest, so that a row tells which key it needs and nothing about it. A key given twice counts once.
  const named = new Map(local.map((key) => [hash('sha256', key).slice(0, 16), key]));
  const keys: MasterKey[] = [...named].map(([id, key]) => localMasterKey(id, key, entropy));
  if (transit !== undefined) keys.unshift(transitMasterKey(transit));
  const [current, ...earlier] = keys;
  if (current === undefined) throw new Error('no master key is configured');
  return createMasterKeyVault({ masterKeys: [current, ...earlier], entropy });
}
