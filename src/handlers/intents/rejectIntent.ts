import { rejectIntent as reject } from '../../domain/requests/intents/reject-intent.ts';
import type { Handler } from '../../operation-context.ts';

export const rejectIntent: Handler<'rejectIntent'> = ({ path }, context) => reject(context, path.intent_id);
