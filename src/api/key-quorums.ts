import * as createKeyQuorumModule from '../domain/access/key-quorums/create-key-quorum.ts';
import * as deleteKeyQuorumModule from '../domain/access/key-quorums/delete-key-quorum.ts';
import * as keyQuorums from '../domain/access/key-quorums/find-key-quorum.ts';
import { findKeyQuorum } from '../domain/access/key-quorums/find-key-quorum.ts';
import { keyQuorumView } from '../domain/access/key-quorums/key-quorum-view.ts';
import * as updateKeyQuorumModule from '../domain/access/key-quorums/update-key-quorum.ts';
import type { Handler } from '../operation-context.ts';

export const listKeyQuorums: Handler<'listKeyQuorums'> = async ({ query }, context) => {
  const { quorums, nextCursor } = await keyQuorums.listKeyQuorums(context, query);
  return { data: quorums.map(keyQuorumView), next_cursor: nextCursor };
};

export const createKeyQuorum: Handler<'createKeyQuorum'> = async ({ body }, context) =>
  keyQuorumView(await createKeyQuorumModule.createKeyQuorum(context, body));

export const deleteKeyQuorum: Handler<'deleteKeyQuorum'> = async ({ path }, context) => {
  await deleteKeyQuorumModule.deleteKeyQuorum(context, path.key_quorum_id);
  return { success: true };
};

export const getKeyQuorum: Handler<'getKeyQuorum'> = async ({ path }, context) =>
  keyQuorumView(await findKeyQuorum(context, path.key_quorum_id));

export const updateKeyQuorum: Handler<'updateKeyQuorum'> = async ({ path, body }, context) =>
  keyQuorumView(await updateKeyQuorumModule.updateKeyQuorum(context, path.key_quorum_id, body));
