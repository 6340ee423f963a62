import { keyQuorumView } from '../../domain/access/key-quorums/key-quorum-view.ts';
import { updateKeyQuorum } from '../../domain/access/key-quorums/update-key-quorum.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'updateKeyQuorum'> = async ({ path, body }, context) =>
  keyQuorumView(await updateKeyQuorum(context, path.key_quorum_id, body));
