import { invalidField } from '../../errors.ts';
import type { Handler } from '../control-plane.ts';
import { unpackFile } from '../snapshots/pack-file.ts';
import { InvalidSnapshotError } from '../snapshots/snapshot-file.ts';
import { snapshotView } from '../snapshots/snapshot-view.ts';

export const run: Handler<'uploadSnapshot'> = async ({ path, body }, { snapshots }) => {
  try {
    return snapshotView(await snapshots.write(path.name, await unpackFile(body.content)));
  } catch (error) {
    if (error instanceof InvalidSnapshotError) throw invalidField('/content', error.message);
    throw error;
  }
};
