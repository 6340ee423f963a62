import { createKeyQuorum } from '../../domain/access/key-quorums/create-key-quorum.ts';
import { keyQuorumView } from '../../domain/access/key-quorums/key-quorum-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'createKeyQuorum'> = async ({ body }, context) =>
  keyQuorumView(await createKeyQuorum(context, body));
