import { defineEntity, p } from '@mikro-orm/core';

/** A running total over what wallets sign, for conditions to refer to. */
export const AggregationEntity = defineEntity({
  name: 'Aggregation',
  tableName: 'aggregations',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    name: p.text(),
    /** JSON object: method, metric, conditions, group_by, window as given. */
    definition: p.text(),
    windowSeconds: p.integer(),
    /** The key quorum that owns the aggregation. */
    ownerId: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
  },
  indexes: [
    { name: 'aggregations_by_app', properties: ['appId', 'id'] },
    { name: 'aggregations_by_owner', properties: ['ownerId'], where: 'owner_id is not null' },
  ],
});
