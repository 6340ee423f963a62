import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/**
 * The SQL expression for the `numberKey` of an item. It is indexed, so that a number is found whatever its notation.
 */
export const NUMBER_KEY = `case \
when ltrim(rtrim(value_lower, '.'), '.') <> value_lower or value_lower in ('', '-', '0x') then '.' || value_lower \
when substr(value_lower, 1, 2) = '0x' then '0x0' || ltrim(substr(value_lower, 3), '0') \
when substr(value_lower, 1, 1) = '-' then '-0' || ltrim(substr(value_lower, 2), '0') \
when replace(value_lower, '.', '') <> value_lower then rtrim('0' || ltrim(value_lower, '0'), '0') \
else '0' || ltrim(value_lower, '0') end`;

export const ConditionSetItemEntity = defineEntity({
  name: 'ConditionSetItem',
  tableName: 'condition_set_items',
  properties: {
    id: p.text().primary(),
    conditionSetId: p.text(),
    value: p.text(),
    /** The value in lower case, for comparisons that ignore case. */
    valueLower: p.text(),
    createdAtMs: p.bigint('number'),
  },
  indexes: [
    { name: 'condition_set_items_by_age', properties: ['conditionSetId', 'createdAtMs', 'id'] },
    { name: 'condition_set_items_by_value', properties: ['conditionSetId', 'valueLower'] },
    {
      name: 'condition_set_items_by_number',
      expression: `create index "condition_set_items_by_number" on "condition_set_items" ("condition_set_id", (${NUMBER_KEY}))`,
    },
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
    /** The key quorum that owns the set; null without an owner. */
    ownerId: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
  },
  indexes: [
    { name: 'condition_sets_by_owner', properties: ['ownerId'], where: 'owner_id is not null' },
    { name: 'condition_sets_by_age', properties: ['appId', 'createdAtMs', 'id'] },
  ],
});

export type StoredConditionSet = InferEntity<typeof ConditionSetEntity>;
