import { countEvents } from '../../domain/access/webhooks/count-events.ts';
import type { Handler } from '../control-plane.ts';

export const run: Handler<'countEvents'> = async (_input, { read, events }) => {
  const counts = await read(countEvents);
  return {
    data: counts.map(({ type, ...count }) => {
      const written = events.write(JSON.stringify({ type })) as { type: string };
      return { type: written.type, ...count };
    }),
  };
};
