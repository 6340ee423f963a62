import { defineEntity, p } from '@mikro-orm/core';

/** An account that may send again after the last restore. */
export const AcceptedAccountEntity = defineEntity({
  name: 'AcceptedAccount',
  tableName: 'accepted_accounts',
  properties: {
    caip2: p.text().primary(),
    /** In the notation of wallet addresses. */
    address: p.text().primary(),
    acceptedAtMs: p.bigint('number'),
    /** `chain`: the chain has nothing of it that the database lacks. `operator`: an operator has accepted it. */
    acceptedBy: p.text(),
  },
});
