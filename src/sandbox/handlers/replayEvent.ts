import { findApp } from '../../domain/access/apps/find-app.ts';
import { findEvent } from '../../domain/base/events/list-events.ts';
import { recordEvent } from '../../domain/base/events/record-event.ts';
import type { Handler } from '../control-plane.ts';
import { eventView } from '../event-view.ts';

// CHOICE: a new id. Receivers must drop an id that they have had, so under the old one a replay would show nothing but
// that; whoever wants one delivery tried again, id and all, replays the delivery.
export const run: Handler<'replayEvent'> = async ({ path }, context) => {
  const { clock, ids } = context;
  const event = await context.change(async (em) => {
    const before = await findEvent(em, path.event_id);
    const app = await findApp(em, before.appId);
    const { type, ...payload } = JSON.parse(before.payload) as { type: string };
    const id = await recordEvent({ app, em, ids, nowMs: clock.now() }, type, payload);
    return findEvent(em, id);
  });
  return eventView(event, context);
};
