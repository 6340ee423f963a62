import { hash } from 'node:crypto';
import type { MasterKeySettings } from '../config/signer.ts';
import type { KeyStore } from '../ports/key-store.ts';
import type { Entropy } from '../ports/runtime.ts';
import { createKeyStore, type KeyStoreOptions } from './key-operations.ts';
import { localMasterKey, type MasterKey } from './master-keys.ts';
import {
  keepTokenAlive,
  type TokenRenewal,
  transitClient,
  transitKeyId,
  transitMasterKey,
} from './transit.ts';

/** The defaults: swaps and reward claims are not signed, and the default fee ceilings apply. */
const noBuilding = { feeCeilings: new Map(), swapRouters: new Map(), rewardDistributors: new Map() };

interface ProductionKeyStoreOptions
  extends Pick<KeyStoreOptions, 'phraseKeys' | 'logins' | 'building' | 'signaturesPerRequest' | 'journal'> {
  /** Renews the token of the key management service. Commands leave it out, and use the token until it expires. */
  readonly tokenRenewal?: TokenRenewal;
}

/**
 * Returns the production key store. If a transit key is configured, it is the current master key, and local keys only
 * open older secrets.
 */
export function productionKeyStore(
  settings: MasterKeySettings,
  entropy: Entropy,
  {
    phraseKeys,
    logins,
    building = noBuilding,
    signaturesPerRequest,
    journal,
    tokenRenewal,
  }: ProductionKeyStoreOptions = {},
): KeyStore {
  const keys: MasterKey[] = [...namedKeys(settings)].map(([id, key]) => localMasterKey(id, key, entropy));
  if (settings.transit !== undefined) {
    const client = transitClient(settings.transit);
    keys.unshift(transitMasterKey(client));
    if (tokenRenewal !== undefined) void keepTokenAlive(client, tokenRenewal);
  }
  const [current, ...earlier] = keys;
  if (current === undefined) throw new Error('expected at least one master key, got none');
  return createKeyStore({
    masterKeys: [current, ...earlier],
    entropy,
    ...{ phraseKeys, logins, building, signaturesPerRequest, journal },
  });
}

export function masterKeyIdsOf(settings: MasterKeySettings): string[] {
  const { transit } = settings;
  return [...(transit === undefined ? [] : [transitKeyId(transit)]), ...namedKeys(settings).keys()];
}

// The id of a key is a digest of the key, so it identifies the key without revealing it. Duplicate keys get the same
// id, so the map has them once.
function namedKeys({ local }: MasterKeySettings): Map<string, Uint8Array> {
  return new Map(local.map((key) => [hash('sha256', key).slice(0, 16), key]));
}
