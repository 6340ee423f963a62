import { findKeyQuorum, type StoredKeyQuorum } from '../../access/key-quorums/find-key-quorum.ts';
import { keyQuorumView } from '../../access/key-quorums/key-quorum-view.ts';
import { lockKeyQuorum } from '../../access/key-quorums/lock-key-quorum.ts';
import { checkKeyQuorumChange, updateKeyQuorum } from '../../access/key-quorums/update-key-quorum.ts';
import type { Proposal } from './proposal.ts';

export const updateKeyQuorumProposal: Proposal<'updateKeyQuorum', StoredKeyQuorum> = {
  intentType: 'KEY_QUORUM',
  async hold(context, { key_quorum_id: id }) {
    await lockKeyQuorum(context, id);
    const row = await findKeyQuorum(context, id);
    return { id, ownerId: id, row };
  },
  pathOf: (_, path) => path,
  async check(context, { row }, { body }) {
    await checkKeyQuorumChange(context, row, body);
  },
  priorState: (_, { row }) => keyQuorumView(row),
  run: async (context, { path, body }) =>
    keyQuorumView(await updateKeyQuorum(context, path.key_quorum_id, body)),
};
