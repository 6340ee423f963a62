import { findEvent } from '../../domain/base/events/list-events.ts';
import type { Handler } from '../control-plane.ts';
import { eventView } from '../event-view.ts';

export const run: Handler<'getEvent'> = async ({ path }, context) =>
  eventView(await context.read((em) => findEvent(em, path.event_id)), context);
