import type { RecordedEvent } from '../domain/base/events/events.ts';
import type { ControlContext } from './control-plane.ts';
import type { SandboxEvent } from './generated/schemas.ts';

/** The control plane's representation of an event, with the payload that endpoints receive. */
export function eventView(event: RecordedEvent, { events }: Pick<ControlContext, 'events'>): SandboxEvent {
  const payload = events.write(event.payload) as SandboxEvent['payload'];
  return {
    id: event.id,
    app_id: event.appId,
    type: payload.type,
    created_at_ms: event.createdAtMs,
    payload,
  };
}
