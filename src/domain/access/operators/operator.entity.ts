import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import type { OperatorRole } from './operator.ts';

/** A person or program that works on an app through the admin port. */
export const OperatorEntity = defineEntity({
  name: 'Operator',
  tableName: 'operators',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    name: p.text(),
    role: p.text().$type<OperatorRole>(),
    /** Hex SHA-256 of the secret's UTF-8 bytes; null once the operator is removed. */
    secretHash: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
    /**
     * When the operator was removed. The row stays, because the audit log refers to it, and because a server that has
     * had operators never again admits callers without an operator's secret to the admin port.
     */
    removedAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [{ name: 'operators_by_app', properties: ['appId', 'createdAtMs', 'id'] }],
  uniques: [{ name: 'operators_secret_hash', properties: ['secretHash'] }],
});

export type StoredOperator = InferEntity<typeof OperatorEntity>;
