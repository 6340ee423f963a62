import { findApp } from '../../domain/access/apps/find-app.ts';
import { findEvent } from '../../domain/base/events/list-events.ts';
import { recordEvent } from '../../domain/base/events/record-event.ts';
import type { Handler } from '../control-plane.ts';
import { eventView } from '../event-view.ts';

// CHOICE: a replayed event gets a new id, because receivers drop ids that they have already processed. To retry one
// delivery with its id, replay the delivery instead.
export const run: Handler<'replayEvent'> = async ({ path }, context) => {
  const { clock, ids } = context;
  const event = await context.change(async (em) => {
    const original = await findEvent(em, path.event_id);
    const app = await findApp(em, original.appId);
    const { type, ...payload } = JSON.parse(original.payload) as { type: string };
    const id = await recordEvent({ em, ids, nowMs: clock.now() }, { appId: app.id, type, payload });
    return findEvent(em, id);
  });
  return eventView(event, context);
};
