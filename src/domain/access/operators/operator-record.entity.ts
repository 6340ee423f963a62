import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { jsonText } from '../../../storage/json-text.ts';
import type { OperatorOrigin } from './operator-caller.ts';
import type { OperatorRole } from './operator-role.ts';

/** One thing that an operator did, or was refused. Never changed. */
export const OperatorRecordEntity = defineEntity({
  name: 'OperatorRecord',
  tableName: 'operator_records',
  properties: {
    sequence: p.bigint('number').primary().autoincrement().ignoreSchemaChanges('type'),
    appId: p.text(),
    /** Null for a caller that no secret identified: the command line, or the admin port of a server without operators. */
    operatorId: p.text().strictNullable(),
    /** Name and role at that time. */
    operatorName: p.text().strictNullable(),
    operatorRole: p.text().$type<OperatorRole>().strictNullable(),
    origin: p.text().$type<OperatorOrigin>(),
    /** The operationId on the admin port; commands use the same names. */
    action: p.text(),
    /** Calls are reads and refusals, which are kept for less long. */
    kind: p.text().$type<'change' | 'call'>(),
    /** Ids of what it was done to. */
    targets: jsonText<Readonly<Record<string, string>>>(),
    /** `done`, or the error code of a refusal. */
    result: p.text(),
    atMs: p.bigint('number'),
  },
  indexes: [
    { name: 'operator_records_by_app', properties: ['appId', 'sequence'] },
    { name: 'operator_records_of_changes', properties: ['appId', 'kind', 'sequence'] },
    { name: 'operator_records_by_operator', properties: ['operatorId', 'kind', 'sequence'] },
  ],
});

export type StoredOperatorRecord = InferEntity<typeof OperatorRecordEntity>;
