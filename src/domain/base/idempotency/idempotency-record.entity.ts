import { defineEntity, p } from '@mikro-orm/core';

/** An answer kept under an app's idempotency key, so that a repetition of the request gets it again. */
export const IdempotencyRecordEntity = defineEntity({
  name: 'IdempotencyRecord',
  tableName: 'idempotency_records',
  properties: {
    appId: p.text().primary(),
    key: p.text().primary(),
    /** Stands for the operation, its path and its body. */
    fingerprint: p.text(),
    status: p.integer(),
    /** The body as sent, in the contract's words; null for an answer without a body. */
    answer: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
  },
  indexes: [{ name: 'idempotency_records_by_age', properties: ['createdAtMs'] }],
});
