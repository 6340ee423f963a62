import { findKeyQuorum } from '../../domain/access/key-quorums/find-key-quorum.ts';
import { keyQuorumView } from '../../domain/access/key-quorums/key-quorum-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getKeyQuorum'> = async ({ path }, context) =>
  keyQuorumView(await findKeyQuorum(context, path.key_quorum_id));
