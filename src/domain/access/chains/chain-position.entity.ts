import { defineEntity, p } from '@mikro-orm/core';

/** How far a chain's transfers have been read and reported. Without a row, nothing has been read yet. */
export const ChainPositionEntity = defineEntity({
  name: 'ChainPosition',
  tableName: 'chain_positions',
  properties: {
    caip2: p.text().primary(),
    /** `ChainTransfer.position` of the last reported transfer. */
    position: p.text(),
  },
});
