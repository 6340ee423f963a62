import { defineEntity, p } from '@mikro-orm/core';

/** How far a chain's transfers have been read and reported. Without a row, nothing has been read yet. */
export const ChainPositionEntity = defineEntity({
  name: 'ChainPosition',
  tableName: 'chain_positions',
  properties: {
    caip2: p.text().primary(),
    /** `TransferPage.position` of the last recorded page; empty if none has been. */
    position: p.text(),
    /** Until then, the process that is reading the next page has the chain to itself. */
    leasedUntilMs: p.bigint('number').default(0),
    /** The process that claimed it last. */
    claimedBy: p.text().strictNullable(),
  },
});
