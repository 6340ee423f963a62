import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import type { CreateAggregationRequest } from '../../../generated/schemas.ts';
import { jsonText } from '../../../storage/sql-functions.ts';

/** The amount that one signed request added to an aggregation. */
export const AggregationRecordEntity = defineEntity({
  name: 'AggregationRecord',
  tableName: 'aggregation_records',
  properties: {
    id: p.text().primary(),
    aggregationId: p.text(),
    /** The wallet's id and the values of `group_by`, or a digest of long values. */
    groupKey: p.text(),
    /** A decimal integer as text, so that sums are exact beyond 64 bits. */
    amount: p.text(),
    recordedAtMs: p.bigint('number'),
  },
  indexes: [
    { name: 'aggregation_records_window', properties: ['aggregationId', 'groupKey', 'recordedAtMs'] },
    { name: 'aggregation_records_by_age', properties: ['aggregationId', 'recordedAtMs'] },
  ],
});

/** The definition of an aggregation: the request that created it, without its name and owner. */
type AggregationTerms = Pick<
  CreateAggregationRequest,
  'method' | 'metric' | 'conditions' | 'group_by' | 'window'
>;

/** A running total over signed requests, to which the conditions of policies can refer. */
export const AggregationEntity = defineEntity({
  name: 'Aggregation',
  tableName: 'aggregations',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    name: p.text(),
    /** The definition as in the request. */
    definition: jsonText<AggregationTerms>(),
    windowSeconds: p.integer(),
    /** The key quorum that owns the aggregation; null without an owner. */
    ownerId: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
  },
  indexes: [
    { name: 'aggregations_by_app', properties: ['appId', 'id'] },
    { name: 'aggregations_by_owner', properties: ['ownerId'], where: 'owner_id is not null' },
  ],
});

export type StoredAggregation = InferEntity<typeof AggregationEntity>;
