import type { KeyQuorum } from '../../../generated/schemas.ts';
import type { StoredKeyQuorum } from './find-key-quorum.ts';

/** A key quorum as the contract shows it. */
export function keyQuorumView(quorum: StoredKeyQuorum): KeyQuorum {
  return {
    id: quorum.id,
    display_name: quorum.displayName,
    authorization_threshold: quorum.threshold,
    // CHOICE: no operation gives a name to a single key.
    authorization_keys: quorum.publicKeys.map((key) => ({ public_key: key, display_name: null })),
    user_ids: quorum.userIds.length === 0 ? null : [...quorum.userIds],
    ...(quorum.keyQuorumIds.length === 0 ? {} : { key_quorum_ids: [...quorum.keyQuorumIds] }),
  };
}
