import { deleteKeyQuorum as remove } from '../../domain/access/key-quorums/delete-key-quorum.ts';
import type { Handler } from '../../operation-context.ts';

export const deleteKeyQuorum: Handler<'deleteKeyQuorum'> = async ({ path }, context) => {
  await remove(context, path.key_quorum_id);
  return { success: true };
};
