import { listKeyQuorums } from '../../domain/access/key-quorums/find-key-quorum.ts';
import { keyQuorumView } from '../../domain/access/key-quorums/key-quorum-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listKeyQuorums'> = async ({ query }, context) => {
  const { quorums, nextCursor } = await listKeyQuorums(context, query);
  return { data: quorums.map(keyQuorumView), next_cursor: nextCursor };
};
