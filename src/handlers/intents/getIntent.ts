import { findIntent } from '../../domain/requests/intents/find-intent.ts';
import { readIntentView } from '../../domain/requests/intents/intent-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getIntent'> = async ({ path }, context) =>
  readIntentView(context, await findIntent(context, path.intent_id));
