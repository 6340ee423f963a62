import { defineEntity, p } from '@mikro-orm/core';

/** That a member signed an intent. Members sign once: a signature cannot be given twice or taken back. */
export const IntentSignatureEntity = defineEntity({
  name: 'IntentSignature',
  tableName: 'intent_signatures',
  properties: {
    intentId: p.text().primary(),
    /** `public_key` or `user`, as members of key quorums are. */
    kind: p.text().primary(),
    /** Canonical base64 SubjectPublicKeyInfo, or user id. */
    member: p.text().primary(),
    /** The key that verified the signature: the member itself, or a key of the user's. */
    publicKey: p.text(),
    /** When the member says it was signed. */
    signedAtMs: p.bigint('number'),
    /** When it was taken in. */
    receivedAtMs: p.bigint('number'),
  },
  indexes: [{ name: 'intent_signatures_by_member', properties: ['member', 'intentId'] }],
});
