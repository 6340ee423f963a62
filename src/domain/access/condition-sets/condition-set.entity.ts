import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/** One value of a condition set. */
export const ConditionSetItemEntity = defineEntity({
  name: 'ConditionSetItem',
  tableName: 'condition_set_items',
  properties: {
    id: p.text().primary(),
    conditionSetId: p.text(),
    value: p.text(),
    /** The value in lower case, for case-insensitive comparisons. */
    valueLower: p.text(),
    createdAtMs: p.bigint('number'),
  },
  indexes: [
    { name: 'condition_set_items_by_age', properties: ['conditionSetId', 'createdAtMs', 'id'] },
    { name: 'condition_set_items_by_value', properties: ['conditionSetId', 'valueLower'] },
  ],
  uniques: [{ name: 'condition_set_items_value', properties: ['conditionSetId', 'value'] }],
});

export type StoredConditionSetItem = InferEntity<typeof ConditionSetItemEntity>;

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
