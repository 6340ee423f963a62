import { deleteKeyQuorum } from '../../domain/access/key-quorums/delete-key-quorum.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'deleteKeyQuorum'> = async ({ path }, context) => {
  await deleteKeyQuorum(context, path.key_quorum_id);
  return { success: true };
};
