import { authorizeIntent } from '../../domain/requests/intents/authorize-intent.ts';
import { prepareProposed } from '../../domain/requests/intents/prepare-proposed.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'authorizeIntent', unknown> = ({ path }, context) =>
  prepareProposed(context, path.intent_id);

export const run: PreparedHandler<'authorizeIntent', unknown> = ({ path, body }, context, prepared) =>
  authorizeIntent(context, { id: path.intent_id, body, prepared });
