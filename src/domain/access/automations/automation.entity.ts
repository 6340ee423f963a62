import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import type { AutomationConfig } from '../../../generated/schemas.ts';
import { jsonText } from '../../../storage/json-text.ts';

/** What happens to deposits of the wallets that it is attached to. */
export const AutomationEntity = defineEntity({
  name: 'Automation',
  tableName: 'wallet_automations',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    name: p.text().strictNullable(),
    /** The key quorum that owns the automation. */
    ownerId: p.text().strictNullable(),
    /** 1 or 0. */
    isEnabled: p.integer(),
    /** 1 for the automation of a deposit address, which the operations on automations do not show; 0 otherwise. */
    isManaged: p.integer().default(0),
    /** With names resolved. */
    config: jsonText<AutomationConfig>(),
    createdAtMs: p.bigint('number'),
    updatedAtMs: p.bigint('number'),
  },
  indexes: [
    { name: 'wallet_automations_by_age', properties: ['appId', 'createdAtMs', 'id'] },
    { name: 'wallet_automations_by_owner', properties: ['ownerId'], where: 'owner_id is not null' },
  ],
});

export type StoredAutomation = InferEntity<typeof AutomationEntity>;
