import { keyQuorumView } from '../../domain/key-quorums/key-quorum-view.ts';
import { updateKeyQuorum as update } from '../../domain/key-quorums/update-key-quorum.ts';
import type { Handler } from '../../services.ts';

export const updateKeyQuorum: Handler<'updateKeyQuorum'> = async ({ path, body }, context) =>
  keyQuorumView(await update(context, path.key_quorum_id, body));
