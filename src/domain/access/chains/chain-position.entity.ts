import { defineEntity, p } from '@mikro-orm/core';

/** How far the transfers of a chain were read and told of. No row: nothing of it was read yet. */
export const ChainPositionEntity = defineEntity({
  name: 'ChainPosition',
  tableName: 'chain_positions',
  properties: {
    caip2: p.text().primary(),
    /** `ChainTransfer.position` of the last transfer that was told of. */
    position: p.text(),
  },
});
