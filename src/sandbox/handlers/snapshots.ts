import { invalidField } from '../../errors.ts';
import type { Handler } from '../control-plane.ts';
import { firstAfter } from '../requests/follow-requests.ts';
import { requireLog } from '../requests/request-view.ts';
import {
  decodeSnapshot,
  encodeSnapshot,
  InvalidSnapshotError,
  packFile,
  snapshotView,
  unpackFile,
} from '../snapshot-file.ts';

export const listSnapshots: Handler<'listSnapshots'> = async (_input, { snapshots }) => ({
  data: (await snapshots.list()).map(snapshotView),
});

export const saveSnapshot: Handler<'saveSnapshot'> = async ({ body }, { snapshots }) =>
  snapshotView(await snapshots.save(body.name));

export const uploadSnapshot: Handler<'uploadSnapshot'> = async ({ path, body }, { snapshots }) => {
  try {
    return snapshotView(await snapshots.write(path.name, await unpackFile(body.content)));
  } catch (error) {
    if (error instanceof InvalidSnapshotError) throw invalidField('/content', error.message);
    throw error;
  }
};

export const deleteSnapshot: Handler<'deleteSnapshot'> = async ({ path }, { snapshots }) => {
  await snapshots.remove(path.name);
  return { deleted: true };
};

export const downloadSnapshot: Handler<'downloadSnapshot'> = async ({ path, query }, context) => {
  const { snapshots, prefix } = context;
  const content = await snapshots.read(path.name);
  if (query.requests_after === undefined) return { content: await packFile(content) };
  const log = requireLog(context.requests);
  const requests = log.pack(firstAfter(log, query.requests_after));
  const whole = encodeSnapshot({ ...decodeSnapshot(content), requests, prefix });
  return { content: await packFile(Buffer.concat(whole)) };
};

export const loadSnapshot: Handler<'loadSnapshot'> = async ({ path }, { snapshots, clock }) => {
  await snapshots.load(path.name);
  return { loaded: true, now_ms: clock.now() };
};
