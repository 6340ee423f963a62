import { defineEntity, p } from '@mikro-orm/core';

/** A response that is stored under an app's idempotency key. It is returned when the request is repeated. */
export const IdempotencyRecordEntity = defineEntity({
  name: 'IdempotencyRecord',
  tableName: 'idempotency_records',
  properties: {
    appId: p.text().primary(),
    key: p.text().primary(),
    /** Digest of the operation, path parameters and body. */
    fingerprint: p.text(),
    status: p.integer(),
    /** The body as it was sent, with the field names of the API document; null for a response without a body. */
    answer: p.text().strictNullable(),
    /**
     * JSON array of the public keys whose signatures authorized the request; null if it needed none. A repeated request
     * gets the response only if all of these keys signed it.
     */
    signers: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
  },
  indexes: [{ name: 'idempotency_records_by_age', properties: ['createdAtMs'] }],
});
