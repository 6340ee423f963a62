import { authorizeIntent as authorizeIntentVerb } from '../domain/requests/intents/authorize-intent.ts';
import { findIntent } from '../domain/requests/intents/find-intent.ts';
import { proposeIntent, rejectIntent as rejectIntentVerb } from '../domain/requests/intents/intent.ts';
import { readIntentView } from '../domain/requests/intents/intent-view.ts';
import { listIntents as listIntentsVerb } from '../domain/requests/intents/list-intents.ts';
import { planProposed } from '../domain/requests/intents/proposals.ts';
import type { Handler, PlannedHandler } from '../ports/operation-context.ts';

export const listIntents: Handler<'listIntents'> = async ({ query }, context) => {
  const filter = {
    status: query.status,
    intentType: query.intent_type,
    resourceId: query.resource_id,
    createdById: query.created_by_id,
    pendingMemberId: query.pending_member_id,
    currentUserHasSigned:
      query.current_user_has_signed === undefined ? undefined : query.current_user_has_signed === 'true',
  };
  const page = { order: query.sort_by, cursor: query.cursor, limit: query.limit };
  const { intents, nextCursor } = await listIntentsVerb(context, filter, page);
  return { data: intents, next_cursor: nextCursor };
};

export const addConditionSetItemsIntent: Handler<'addConditionSetItemsIntent'> = (input, context) =>
  proposeIntent(context, 'addConditionSetItems', input);

export const replaceConditionSetItemsIntent: Handler<'replaceConditionSetItemsIntent'> = (input, context) =>
  proposeIntent(context, 'replaceConditionSetItems', input);

export const updateKeyQuorumIntent: Handler<'updateKeyQuorumIntent'> = (input, context) =>
  proposeIntent(context, 'updateKeyQuorum', input);

export const updatePolicyIntent: Handler<'updatePolicyIntent'> = (input, context) =>
  proposeIntent(context, 'updatePolicy', input);

export const createPolicyRuleIntent: Handler<'createPolicyRuleIntent'> = (input, context) =>
  proposeIntent(context, 'createPolicyRule', input);

export const deletePolicyRuleIntent: Handler<'deletePolicyRuleIntent'> = (input, context) =>
  proposeIntent(context, 'deletePolicyRule', input);

export const updatePolicyRuleIntent: Handler<'updatePolicyRuleIntent'> = (input, context) =>
  proposeIntent(context, 'updatePolicyRule', input);

export const updateWalletIntent: Handler<'updateWalletIntent'> = (input, context) =>
  proposeIntent(context, 'updateWallet', input);

export const createWalletRpcIntent: Handler<'createWalletRpcIntent'> = (input, context) =>
  proposeIntent(context, 'walletRpc', input);

export const createWalletTransferIntent: Handler<'createWalletTransferIntent'> = (input, context) =>
  proposeIntent(context, 'transferFromWallet', input);

export const getIntent: Handler<'getIntent'> = async ({ path }, context) =>
  readIntentView(context, await findIntent(context, path.intent_id));

export const authorizeIntent: PlannedHandler<'authorizeIntent', unknown> = {
  plan: ({ path }, context) => planProposed(context, path.intent_id),
  run: ({ path, body }, context, planned) =>
    authorizeIntentVerb(context, { id: path.intent_id, body, planned }),
};

export const rejectIntent: Handler<'rejectIntent'> = ({ path }, context) =>
  rejectIntentVerb(context, path.intent_id);
