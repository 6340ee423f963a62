import type { Handler } from '../control-plane.ts';

export const run: Handler<'deleteSnapshot'> = async ({ path }, { snapshots }) => {
  await snapshots.remove(path.name);
  return { deleted: true };
};
