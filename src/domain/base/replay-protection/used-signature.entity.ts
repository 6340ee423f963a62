import { defineEntity, p } from '@mikro-orm/core';

/** A signed payload that an app's request or intent has used, for apps that accept each once. */
export const UsedSignatureEntity = defineEntity({
  name: 'UsedSignature',
  tableName: 'used_signatures',
  properties: {
    appId: p.text().primary(),
    /**
     * SHA-256 of the canonical payload, base64. The signature is not used, because a payload has many valid signatures.
     */
    digest: p.text().primary(),
    /** The intent that it authorizes; null if it was used by a direct request. */
    intentId: p.text().strictNullable(),
    /** The response to the request; null for an intent. */
    status: p.integer().strictNullable(),
    /** The body as sent; null for a response without one. */
    answer: p.text().strictNullable(),
    /** A JSON array of the public keys whose signatures authorized the request; null for an intent. */
    signers: p.text().strictNullable(),
    /** The request expiry that is signed; null without one: the payload is then stored forever. */
    expiresAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [{ name: 'used_signatures_by_expiry', properties: ['expiresAtMs'] }],
});
