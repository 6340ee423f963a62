import { defineEntity, p } from '@mikro-orm/core';

/** A signed payload that a request or an intent has used. Rows exist only for apps that accept each payload once. */
export const UsedSignatureEntity = defineEntity({
  name: 'UsedSignature',
  tableName: 'used_signatures',
  properties: {
    appId: p.text().primary(),
    /**
     * SHA-256 of the canonical payload, base64. It is not a digest of the signature, because one payload has many
     * valid signatures.
     */
    digest: p.text().primary(),
    /** The intent that the payload authorizes; null if a direct request used it. */
    intentId: p.text().strictNullable(),
    /** The HTTP status of the response to the request; null for an intent. */
    status: p.integer().strictNullable(),
    /** The body as it was sent; null for a response without a body, and for an intent. */
    answer: p.text().strictNullable(),
    /** JSON array of the public keys whose signatures authorized the request; null for an intent. */
    signers: p.text().strictNullable(),
    /** The request expiry that the payload contains. Null for a payload without one, which is stored forever. */
    expiresAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [{ name: 'used_signatures_by_expiry', properties: ['expiresAtMs'] }],
});
