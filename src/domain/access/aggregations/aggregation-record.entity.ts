import { defineEntity, p } from '@mikro-orm/core';

/** What one signed request added to an aggregation. */
export const AggregationRecordEntity = defineEntity({
  name: 'AggregationRecord',
  tableName: 'aggregation_records',
  properties: {
    id: p.text().primary(),
    aggregationId: p.text(),
    /** The wallet and the values of `group_by`; a digest when they are long. */
    groupKey: p.text(),
    /** Decimal integer: sums are exact beyond 64 bits. */
    amount: p.text(),
    recordedAtMs: p.bigint('number'),
  },
  indexes: [
    { name: 'aggregation_records_window', properties: ['aggregationId', 'groupKey', 'recordedAtMs'] },
    { name: 'aggregation_records_by_age', properties: ['aggregationId', 'recordedAtMs'] },
  ],
});
