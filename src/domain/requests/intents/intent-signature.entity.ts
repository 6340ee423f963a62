import { defineEntity, p } from '@mikro-orm/core';

/** A member's signature of an intent. Members sign once and cannot withdraw a signature. */
export const IntentSignatureEntity = defineEntity({
  name: 'IntentSignature',
  tableName: 'intent_signatures',
  properties: {
    intentId: p.text().primary(),
    /** `public_key` or `user`, as members of key quorums are. */
    kind: p.text().primary(),
    /** Canonical base64 SubjectPublicKeyInfo, or user id. */
    member: p.text().primary(),
    /** The key that verified the signature: the member itself, or one of the user's keys. */
    publicKey: p.text(),
    /** Base64, as received; null when it was received by an earlier version. */
    signature: p.text().strictNullable(),
    /** The canonical payload that it covers; null as `signature`. */
    payload: p.text().strictNullable(),
    /** The signing time claimed by the member. */
    signedAtMs: p.bigint('number'),
    /** When the signature was received. */
    receivedAtMs: p.bigint('number'),
  },
  indexes: [{ name: 'intent_signatures_by_member', properties: ['member', 'intentId'] }],
});
