import { defineEntity, p } from '@mikro-orm/core';

/** A response stored under an app's idempotency key and returned to repetitions of the request. */
export const IdempotencyRecordEntity = defineEntity({
  name: 'IdempotencyRecord',
  tableName: 'idempotency_records',
  properties: {
    appId: p.text().primary(),
    key: p.text().primary(),
    /** Digest of the operation, path parameters and body. */
    fingerprint: p.text(),
    status: p.integer(),
    /** The body as sent, in the contract's words; null for an answer without a body. */
    answer: p.text().strictNullable(),
    /**
     * A JSON array of the public keys whose signatures authorized the request; null if it needed none. Only requests that
     * they sign get the answer.
     */
    signers: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
  },
  indexes: [{ name: 'idempotency_records_by_age', properties: ['createdAtMs'] }],
});
