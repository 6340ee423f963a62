import type { Handler } from '../control-plane.ts';

export const run: Handler<'loadSnapshot'> = async ({ path }, { snapshots, clock }) => {
  await snapshots.load(path.name);
  return { loaded: true, now_ms: clock.now() };
};
