import type { Handler } from '../control-plane.ts';
import { snapshotView } from '../snapshots/snapshot-view.ts';

export const run: Handler<'saveSnapshot'> = async ({ body }, { snapshots }) =>
  snapshotView(await snapshots.save(body.name));
