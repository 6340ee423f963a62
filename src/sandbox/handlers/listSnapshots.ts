import type { Handler } from '../control-plane.ts';
import { snapshotView } from '../snapshots/snapshot-view.ts';

export const run: Handler<'listSnapshots'> = async (_input, { snapshots }) => ({
  data: (await snapshots.list()).map(snapshotView),
});
