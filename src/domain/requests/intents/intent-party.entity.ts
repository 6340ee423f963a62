import { defineEntity, p } from '@mikro-orm/core';

/**
 * A key quorum that may authorize an intent, for look-ups by member. A change of the resource's owner or signers
 * dismisses the intent, so the rows stay valid while it is pending.
 */
export const IntentPartyEntity = defineEntity({
  name: 'IntentParty',
  tableName: 'intent_parties',
  properties: {
    intentId: p.text().primary(),
    keyQuorumId: p.text().primary(),
    /** Position among the parties; the owner is first. */
    position: p.integer(),
  },
  indexes: [{ name: 'intent_parties_by_quorum', properties: ['keyQuorumId', 'intentId'] }],
});
