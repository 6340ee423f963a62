import { findApp } from '../../domain/access/apps/find-app.ts';
import { findEvent } from '../../domain/base/events/list-events.ts';
import { recordEvent } from '../../domain/base/events/record-event.ts';
import type { Handler } from '../control-plane.ts';
import { eventView } from '../event-view.ts';
import { payloadOf } from '../trigger-event.ts';

export const run: Handler<'triggerEvent'> = async ({ body }, context) => {
  const { clock, ids, appId } = context;
  const { type, ...payload } = await payloadOf(body, context);
  const event = await context.change(async (em) => {
    const app = await findApp(em, body.app_id ?? appId);
    const id = await recordEvent(
      { em, ids, nowMs: clock.now() },
      { appId: app.id, type: String(type), payload },
    );
    return findEvent(em, id);
  });
  return eventView(event, context);
};
