import { createKeyQuorum as create } from '../../domain/access/key-quorums/create-key-quorum.ts';
import { keyQuorumView } from '../../domain/access/key-quorums/key-quorum-view.ts';
import type { Handler } from '../../operation-context.ts';

export const createKeyQuorum: Handler<'createKeyQuorum'> = async ({ body }, context) =>
  keyQuorumView(await create(context, body));
