import { LRUCache } from 'lru-cache';
import { sealName } from '../../authorization/policy-seals.ts';
import { changeDigests, type QuorumRecord, type SentSeal } from '../../authorization/quorum-records.ts';
import { UnauthorizedUseError } from '../../authorization/signed-evidence.ts';
import type { SealBinding, SealedKey } from '../../ports/key-vault.ts';
import type { MasterKeyVault } from './vault-master-key.ts';

/** Opens the seal of a policy or of a key quorum. Result: the name of its secret. */
export type OpenAnySeal = (seal: SentSeal, binding: Required<SealBinding>) => Promise<string>;

const MAX_OPENED = 1_000;

/** The names of secrets that were opened are remembered: a key management service is not asked at each use. */
export function sealOpener(envelopes: MasterKeyVault): OpenAnySeal {
  const opened = new LRUCache<string, string>({ max: MAX_OPENED });
  return async ({ sealedSecret, wrappedDataKey, masterKeyId }, { purpose, rowId, appId, authority }) => {
    const key = JSON.stringify([
      ...[purpose, appId, rowId, authority],
      ...[sealedSecret, wrappedDataKey, masterKeyId],
    ]);
    const known = opened.get(key);
    if (known !== undefined) return known;
    const sealed = sealedOf({ sealedSecret, wrappedDataKey, masterKeyId });
    const name = await envelopes.withSecret(sealed, { purpose, rowId, appId, authority }, sealName);
    opened.set(key, name);
    return name;
  };
}

/** A sealed secret that a call carries as text. */
export function sealedOf({ sealedSecret, wrappedDataKey, masterKeyId }: SentSeal): SealedKey {
  return { sealedSecret: bytesOf(sealedSecret), wrappedDataKey: bytesOf(wrappedDataKey), masterKeyId };
}

function bytesOf(text: string): Uint8Array {
  return Buffer.from(text, 'base64');
}

/** The purpose of what is sealed under the changes of a key quorum. */
export const QUORUM_CHANGES = 'key-quorum-changes';

/**
 * Requires that the vault has seen each change of these key quorums when it was made, in this order and with what it
 * names.
 *
 * @throws UnauthorizedUseError; VaultError for another seal.
 */
export async function requireSeenChanges(
  records: readonly QuorumRecord[],
  appId: string,
  open: OpenAnySeal,
): Promise<void> {
  for (const record of records) {
    if (record.changes.length === 0) continue;
    const { seal, base } = record;
    if (seal === undefined) {
      throw new UnauthorizedUseError(`expected the seal of the changes of the key quorum \`${base.id}\``);
    }
    const authority = changeDigests(record).at(-1)!;
    await open(seal, { purpose: QUORUM_CHANGES, rowId: base.id, appId, authority });
  }
}
