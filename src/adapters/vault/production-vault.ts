import { hash } from 'node:crypto';
import type { ServeConfig } from '../../config.ts';
import type { Entropy } from '../../ports/entropy.ts';
import type { KeyVault } from '../../ports/key-vault.ts';
import { localMasterKey } from './master-key-local.ts';
import { transitMasterKey } from './master-key-transit.ts';
import type { MasterKey } from './vault-master-key.ts';
import { createKeyVault } from './vault-operations.ts';

/** The production vault. A transit key, if configured, is the current one; local keys open what they sealed before. */
export function productionVault({ local, transit }: ServeConfig['masterKeys'], entropy: Entropy): KeyVault {
  // A key's id is a digest of the key: it identifies the key without revealing it. Duplicate keys collapse into one.
  const named = new Map(local.map((key) => [hash('sha256', key).slice(0, 16), key]));
  const keys: MasterKey[] = [...named].map(([id, key]) => localMasterKey(id, key, entropy));
  if (transit !== undefined) keys.unshift(transitMasterKey(transit));
  const [current, ...earlier] = keys;
  if (current === undefined) throw new Error('expected at least one master key, got none');
  return createKeyVault({ masterKeys: [current, ...earlier], entropy });
}
