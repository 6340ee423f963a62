import { defineEntity, p } from '@mikro-orm/core';

/** How far the deposits of a provider have been read. A row is made with the first deposit account there. */
export const FiatPositionEntity = defineEntity({
  name: 'FiatPosition',
  tableName: 'fiat_positions',
  properties: {
    provider: p.text().primary(),
    environment: p.text().primary(),
    /** `FiatDepositPage.cursor` of the last page that was stored; empty before the first one. */
    position: p.text(),
  },
});
