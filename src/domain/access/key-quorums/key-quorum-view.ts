import type { KeyQuorum } from '../../../generated/schemas.ts';
import type { StoredKeyQuorum } from './find-key-quorum.ts';

/** A key quorum in wire form. */
export function keyQuorumView(quorum: StoredKeyQuorum): KeyQuorum {
  return {
    id: quorum.id,
    display_name: quorum.displayName,
    authorization_threshold: quorum.threshold,
    // CHOICE: keys have no display name, because no operation sets one.
    authorization_keys: quorum.publicKeys.map((key) => ({ public_key: key, display_name: null })),
    user_ids: quorum.userIds.length === 0 ? null : [...quorum.userIds],
    ...(quorum.keyQuorumIds.length === 0 ? {} : { key_quorum_ids: [...quorum.keyQuorumIds] }),
  };
}
