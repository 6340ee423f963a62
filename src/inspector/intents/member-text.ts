import type { IntentAuthorizationMember } from '../../generated/schemas.ts';
import { dateAndTime } from '../parts/time-text.ts';

/** A member of a quorum and whether it has signed, in words. */
export function memberText(member: IntentAuthorizationMember): string {
  if (member.type === 'key_quorum') {
    const name = `key quorum ${member.display_name ?? member.key_quorum_id}`;
    return `${name}: ${member.threshold_met ? 'has signed' : 'has not signed'}`;
  }
  const name = member.type === 'key' ? member.public_key : `user ${member.user_id}`;
  const { signed_at: signedAt } = member;
  return `${name}: ${signedAt === null ? 'has not signed' : `signed at ${dateAndTime(signedAt)} UTC`}`;
}
