import { findIntent } from '../../domain/intents/find-intent.ts';
import { readIntentView } from '../../domain/intents/intent-view.ts';
import type { Handler } from '../../services.ts';

export const getIntent: Handler<'getIntent'> = async ({ path }, context) =>
  readIntentView(context, await findIntent(context, path.intent_id));
