import type { OperationContext } from '../../../operation-context.ts';
import type { StoredConditionSet } from '../../access/condition-sets/condition-set.entity.ts';
import {
  addConditionSetItems,
  listConditionSetItems,
  replaceConditionSetItems,
  requireText,
} from '../../access/condition-sets/condition-set-items.ts';
import { findConditionSetForUpdate } from '../../access/condition-sets/find-condition-set.ts';
import type { Proposal } from './proposal.ts';

type ItemsOperation = 'addConditionSetItems' | 'replaceConditionSetItems';

const shared = {
  intentType: 'CONDITION_SET',
  async hold(context, { condition_set_id: id }) {
    const row = await findConditionSetForUpdate(context, id);
    return { id, ownerId: row.ownerId, row };
  },
  pathOf: (_, path) => path,
  check: (_, _subject, { body }) => requireText(body),
  // CHOICE: the newest hundred, as many as a page of them shows; a set may hold any number.
  priorState: async (context: OperationContext, { id }) =>
    (await listConditionSetItems(context, id, {})).items,
} satisfies Omit<Proposal<ItemsOperation, StoredConditionSet>, 'run'>;

export const addConditionSetItemsProposal: Proposal<'addConditionSetItems', StoredConditionSet> = {
  ...shared,
  run: (context, { path, body }) => addConditionSetItems(context, path.condition_set_id, body),
};

export const replaceConditionSetItemsProposal: Proposal<'replaceConditionSetItems', StoredConditionSet> = {
  ...shared,
  run: (context, { path, body }) => replaceConditionSetItems(context, path.condition_set_id, body),
};
