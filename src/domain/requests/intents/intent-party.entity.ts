import { defineEntity, p } from '@mikro-orm/core';

/**
 * A key quorum that may authorize an intent, for look-ups by member. A change of who owns or signs for the resource
 * dismisses the intent, so that this stays true for as long as it is pending.
 */
export const IntentPartyEntity = defineEntity({
  name: 'IntentParty',
  tableName: 'intent_parties',
  properties: {
    intentId: p.text().primary(),
    keyQuorumId: p.text().primary(),
    /** Place among the parties: the owner is the first. */
    position: p.integer(),
  },
  indexes: [{ name: 'intent_parties_by_quorum', properties: ['keyQuorumId', 'intentId'] }],
});
