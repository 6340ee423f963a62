import type { Handler } from '../control-plane.ts';
import { followEvents } from '../follow-events.ts';

export const run: Handler<'listEvents'> = ({ query }, context) => followEvents(query, context);
