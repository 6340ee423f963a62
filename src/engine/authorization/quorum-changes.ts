import { requireOccasion } from './parties.ts';
import { changeDigests, currentMembers, type QuorumRecord } from './quorum-records.ts';
import { readEvidence, UnauthorizedUseError } from './signed-evidence.ts';
import type { ReadVoucher, Voucher, VoucherContent } from './user-vouchers.ts';

/**
 * The digest of the changes of a key quorum, the last of which a request makes now.
 *
 * NOTE: what it names by ids, and the keys and accounts of users who are not pinned yet, is what the caller says. The digest keeps it from being exchanged
 * later.
 *
 * @throws UnauthorizedUseError unless its members have signed the request, which has not expired.
 */
export function changedQuorum(
  record: QuorumRecord,
  occasion: { readonly quorumId: string; readonly appId: string; readonly nowMs: number },
  readVoucher: ReadVoucher | undefined,
): string {
  const { base, changes } = record;
  const last = changes.at(-1);
  if (last === undefined || base.id !== occasion.quorumId || base.appId !== occasion.appId) {
    throw new UnauthorizedUseError(`expected a change of the key quorum \`${occasion.quorumId}\``);
  }
  requireOccasion(readEvidence(last.evidence), occasion);
  const isOver = ({ content }: Voucher) =>
    !((JSON.parse(content) as VoucherContent).expiresAtMs > occasion.nowMs);
  if (last.vouchers?.some(isOver) === true) throw new UnauthorizedUseError('a key of a user has expired');
  currentMembers(record, { readVoucher, depth: 0 });
  return changeDigests(record).at(-1)!;
}
