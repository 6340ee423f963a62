import type { SentSeal } from '../../../authorization/quorum-records.ts';
import type { SealedKey } from '../../../ports/key-vault.ts';

/** A sealed secret as text, as calls of the vault carry it. */
export function sentSeal({ sealedSecret, wrappedDataKey, masterKeyId }: SealedKey): SentSeal {
  return { sealedSecret: base64(sealedSecret), wrappedDataKey: base64(wrappedDataKey), masterKeyId };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}
