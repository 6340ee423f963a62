import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/** A named list of values that conditions test against. */
export const ConditionSetEntity = defineEntity({
  name: 'ConditionSet',
  tableName: 'condition_sets',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    name: p.text(),
    /** The key quorum that owns the set. */
    ownerId: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
  },
  indexes: [
    { name: 'condition_sets_by_owner', properties: ['ownerId'], where: 'owner_id is not null' },
    { name: 'condition_sets_by_age', properties: ['appId', 'createdAtMs', 'id'] },
  ],
});

export type StoredConditionSet = InferEntity<typeof ConditionSetEntity>;
