import { findApp } from '../../domain/access/apps/find-app.ts';
import { countEvents as countEventsVerb } from '../../domain/access/webhooks/webhook-deliveries.ts';
import { findEvent, type RecordedEvent, recordEvent } from '../../domain/base/events/events.ts';
import type { ControlContext, Handler } from '../control-plane.ts';
import { eventViews, followEvents, payloadOf } from '../events.ts';
import type { SandboxEvent } from '../generated/schemas.ts';

async function oneView(event: RecordedEvent, context: ControlContext): Promise<SandboxEvent> {
  const [view] = await eventViews([event], context);
  return view!;
}

export const listEvents: Handler<'listEvents'> = ({ query }, context) => followEvents(query, context);

export const triggerEvent: Handler<'triggerEvent'> = async ({ body }, context) => {
  const { clock, ids, appId } = context;
  const { type, ...payload } = await payloadOf(body, context);
  const event = await context.change(async (em, notes) => {
    const app = await findApp(em, body.app_id ?? appId);
    const id = await recordEvent(
      { em, notes, ids, nowMs: clock.now() },
      { appId: app.id, type: String(type), payload },
    );
    return findEvent(em, id);
  });
  return oneView(event, context);
};

export const countEvents: Handler<'countEvents'> = async (_input, { read, events }) => {
  const counts = await read(countEventsVerb);
  return {
    data: counts.map(({ type, ...count }) => {
      const written = events.write(JSON.stringify({ type })) as { type: string };
      return { type: written.type, ...count };
    }),
  };
};

export const getEvent: Handler<'getEvent'> = async ({ path }, context) =>
  oneView(await context.read((em) => findEvent(em, path.event_id)), context);

// CHOICE: a replayed event gets a new id, because receivers ignore events whose id they have already processed. To
// retry a delivery under its own id, replay the delivery instead.
export const replayEvent: Handler<'replayEvent'> = async ({ path }, context) => {
  const { clock, ids } = context;
  const event = await context.change(async (em, notes) => {
    const original = await findEvent(em, path.event_id);
    const app = await findApp(em, original.appId);
    const { type, ...payload } = JSON.parse(original.payload) as { type: string };
    const id = await recordEvent({ em, notes, ids, nowMs: clock.now() }, { appId: app.id, type, payload });
    return findEvent(em, id);
  });
  return oneView(event, context);
};
