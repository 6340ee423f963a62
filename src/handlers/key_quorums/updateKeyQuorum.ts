import { keyQuorumView } from '../../domain/access/key-quorums/key-quorum-view.ts';
import { updateKeyQuorum as update } from '../../domain/access/key-quorums/update-key-quorum.ts';
import type { Handler } from '../../operation-context.ts';

export const updateKeyQuorum: Handler<'updateKeyQuorum'> = async ({ path, body }, context) =>
  keyQuorumView(await update(context, path.key_quorum_id, body));
