import { defineEntity, p } from '@mikro-orm/core';

/** How far a chain's transfers have been read and reported. Without a row, nothing has been read yet. */
export const ChainPositionEntity = defineEntity({
  name: 'ChainPosition',
  tableName: 'chain_positions',
  properties: {
    caip2: p.text().primary(),
    /** `TransferPage.position` of the last recorded page; empty before the first page. */
    position: p.text(),
    /** Until this time, only the process in `claimedBy` may read the next page. */
    leasedUntilMs: p.bigint('number').default(0),
    /** The process that last claimed the chain. */
    claimedBy: p.text().strictNullable(),
  },
});
