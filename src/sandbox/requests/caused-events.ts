import { listEventsAbout } from '../../domain/base/events/events.ts';
import type { AnsweredRequest } from '../../ports/request-recorder.ts';
import type { ControlContext } from '../control-plane.ts';
import type { RecordedExchange } from '../generated/schemas.ts';

/** More than a transfer of many steps records. */
const MAX_LATER_EVENTS = 100;

/** The events that a request recorded, and those that its transactions and its wallet action recorded later. */
export async function eventsOf(
  answered: AnsweredRequest,
  own: RecordedExchange['events'],
  context: Pick<ControlContext, 'read'>,
): Promise<RecordedExchange['events']> {
  const ids = [...answered.effects.flatMap(({ transactions }) => transactions), ...actionOf(answered, own)];
  const range = { ids, sinceMs: answered.receivedAtMs, limit: MAX_LATER_EVENTS };
  const later = await context.read((em) => listEventsAbout(em, range));
  const known = new Set(own.map(({ id }) => id));
  return [...own, ...later.filter(({ id }) => !known.has(id)).map(({ id, type }) => ({ id, type }))];
}

/** The id of the wallet action that the request began. */
function actionOf({ responseText }: AnsweredRequest, own: RecordedExchange['events']): string[] {
  if (responseText === undefined || !own.some(({ type }) => type.startsWith('wallet_action.'))) return [];
  const { id } = JSON.parse(responseText) as { id?: unknown };
  return typeof id === 'string' && /^[A-Za-z0-9-]+$/.test(id) ? [id] : [];
}
