import {
  findKeyQuorum,
  keyQuorumView,
  listKeyQuorums as listKeyQuorumsVerb,
} from '../domain/access/key-quorums/find-key-quorum.ts';
import {
  createKeyQuorum as createKeyQuorumVerb,
  deleteKeyQuorum as deleteKeyQuorumVerb,
  updateKeyQuorum as updateKeyQuorumVerb,
} from '../domain/access/key-quorums/key-quorum.ts';
import type { Handler } from '../ports/operation-context.ts';

export const listKeyQuorums: Handler<'listKeyQuorums'> = async ({ query }, context) => {
  const { quorums, nextCursor } = await listKeyQuorumsVerb(context, query);
  return { data: quorums.map(keyQuorumView), next_cursor: nextCursor };
};

export const createKeyQuorum: Handler<'createKeyQuorum'> = async ({ body }, context) =>
  keyQuorumView(await createKeyQuorumVerb(context, body));

export const deleteKeyQuorum: Handler<'deleteKeyQuorum'> = async ({ path }, context) => {
  await deleteKeyQuorumVerb(context, path.key_quorum_id);
  return { success: true };
};

export const getKeyQuorum: Handler<'getKeyQuorum'> = async ({ path }, context) =>
  keyQuorumView(await findKeyQuorum(context, path.key_quorum_id));

export const updateKeyQuorum: Handler<'updateKeyQuorum'> = async ({ path, body }, context) =>
  keyQuorumView(await updateKeyQuorumVerb(context, path.key_quorum_id, body));
