import { MAX_SIGNATURES } from '../../../authorization/request-signatures.ts';
import { invalidField } from '../../../errors.ts';
import { readPublicKey } from '../../base/public-keys/read-public-key.ts';
import { requireUsers } from '../user-records/find-user.ts';
import type { KeyQuorumContext, StoredKeyQuorum } from './find-key-quorum.ts';
import { KeyQuorumMemberEntity } from './key-quorum-member.entity.ts';
import { requireKeyQuorums } from './require-key-quorums.ts';

/** Members and threshold of a key quorum before they are accepted. */
export type ProposedMembers = Pick<StoredKeyQuorum, 'threshold' | 'publicKeys' | 'userIds' | 'keyQuorumIds'>;

/** Public keys of a body in canonical form. Throws invalid_data that names the key which cannot be read. */
export function readPublicKeys(keys: readonly string[]): string[] {
  // Checked before decoding, because decoding a key costs a curve operation.
  refuseTooMany(keys.length);
  return keys.map((key, index) => readPublicKey(key, `/public_keys/${index}`));
}

/**
 * Checks the members of a key quorum: each appears once and belongs to the app, the threshold can be reached, and
 * quorums nest at most one level.
 *
 * @param ownId the id of the quorum being changed; undefined for a new one.
 * @throws ApiError invalid_data
 */
export async function checkMembers(
  context: KeyQuorumContext,
  members: ProposedMembers,
  ownId?: string,
): Promise<void> {
  const { publicKeys, userIds, keyQuorumIds } = members;
  refuseDuplicates(publicKeys, '/public_keys');
  refuseDuplicates(userIds, '/user_ids');
  refuseDuplicates(keyQuorumIds, '/key_quorum_ids');
  checkThreshold(members);
  await requireUsers(context, userIds, '/user_ids');
  await requireKeyQuorums(context, keyQuorumIds, '/key_quorum_ids');
  await refuseDeepNesting(context, keyQuorumIds, ownId);
}

function checkThreshold({ threshold, publicKeys, userIds, keyQuorumIds }: ProposedMembers): void {
  const count = publicKeys.length + userIds.length + keyQuorumIds.length;
  if (count === 0) {
    throw invalidField('', 'expected at least one of `public_keys`, `user_ids`, `key_quorum_ids`');
  }
  refuseTooMany(count);
  if (threshold === null) return;
  if (!Number.isInteger(threshold) || threshold < 1) {
    throw invalidField('/authorization_threshold', `expected a whole number above 0, got ${threshold}`);
  }
  if (threshold > count) {
    throw invalidField(
      '/authorization_threshold',
      `expected at most ${count}, the number of members, got ${threshold}`,
    );
  }
}

// CHOICE: no limit is published; a request cannot carry more signatures than this.
function refuseTooMany(count: number): void {
  if (count > MAX_SIGNATURES) {
    throw invalidField('', `expected at most ${MAX_SIGNATURES} members, got ${count}`);
  }
}

// CHOICE: a duplicate member is refused, not dropped, because the caller expects it to count twice.
function refuseDuplicates(values: readonly string[], pointer: string): void {
  const seen = new Set<string>();
  for (const [index, value] of values.entries()) {
    if (seen.has(value)) throw invalidField(`${pointer}/${index}`, 'expected distinct members');
    seen.add(value);
  }
}

async function refuseDeepNesting(
  context: KeyQuorumContext,
  keyQuorumIds: readonly string[],
  ownId: string | undefined,
): Promise<void> {
  if (keyQuorumIds.length === 0) return;
  if (ownId !== undefined && keyQuorumIds.includes(ownId)) {
    throw invalidField('/key_quorum_ids', 'a key quorum cannot be a member of itself');
  }
  const nested = await context.em.find(KeyQuorumMemberEntity, {
    kind: 'key_quorum',
    $or: [{ keyQuorumId: { $in: [...keyQuorumIds] } }, ...(ownId === undefined ? [] : [{ member: ownId }])],
  });
  const nesting = nested.find((row) => keyQuorumIds.includes(row.keyQuorumId));
  if (nesting !== undefined) {
    const message = `key quorum \`${nesting.keyQuorumId}\` has key quorums as members; nesting is one level deep`;
    throw invalidField('/key_quorum_ids', message);
  }
  if (nested.length > 0) {
    const message = `this key quorum is a member of \`${nested[0]?.keyQuorumId}\`; nesting is one level deep`;
    throw invalidField('/key_quorum_ids', message);
  }
}
