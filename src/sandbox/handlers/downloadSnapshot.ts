import type { Handler } from '../control-plane.ts';
import { packFile } from '../snapshots/pack-file.ts';

export const run: Handler<'downloadSnapshot'> = async ({ path }, { snapshots }) => ({
  content: await packFile(await snapshots.read(path.name)),
});
