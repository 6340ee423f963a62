import { createPublicKey, hash, type KeyObject, verify } from 'node:crypto';
import type { Database } from 'better-sqlite3';
import { canonicalPayloadTexts } from '../../../src/engine/authorization/request-signatures.ts';
import type { CreateKeyQuorumRequest } from '../../../src/generated/schemas.ts';
import type { Ids } from '../../../src/ports/runtime.ts';
import { credentials } from '../credentials.ts';
import type { WorkInput } from './work.ts';

interface Member {
  readonly threshold: number;
  readonly member: string;
}

interface QuorumWork {
  createKeyQuorum(input: WorkInput): unknown;
  /** Verifies as many signatures as the owner of a wallet requires, and returns the fingerprints of their keys. */
  signedBy(ownerId: string, input: WorkInput): readonly string[];
}

/** Key quorums of the bare server: the least that counts the signatures of their members. */
export function quorumWork(database: Database, ids: Pick<Ids, 'cuid2'>): QuorumWork {
  const insertQuorum = database.prepare(
    'insert into key_quorums (id, app_id, authorization_threshold, created_at_ms) values (?, ?, ?, ?)',
  );
  const insertMember = database.prepare(
    `insert into key_quorum_members (key_quorum_id, position, kind, member) values (?, ?, 'public_key', ?)`,
  );
  const selectMembers = database.prepare(
    `select quorum.authorization_threshold as threshold, row.member
    from key_quorums as quorum join key_quorum_members as row on row.key_quorum_id = quorum.id
    where quorum.id = ? and quorum.app_id = ? order by row.position`,
  );
  const insertAll = database.transaction((id: string, threshold: number, keys: readonly string[]) => {
    insertQuorum.run(id, credentials.appId, threshold, Date.now());
    for (const [position, key] of keys.entries()) insertMember.run(id, position, key);
  });
  const keyObjects = new Map<string, KeyObject>();
  const keyObjectOf = (key: string): KeyObject => {
    const known = keyObjects.get(key);
    if (known !== undefined) return known;
    const made = createPublicKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'spki' });
    keyObjects.set(key, made);
    return made;
  };

  const membersOf = (ownerId: string) => selectMembers.all(ownerId, credentials.appId) as Member[];
  return {
    createKeyQuorum({ body }: WorkInput): unknown {
      const { public_keys: keys = [], authorization_threshold: threshold = 1 } =
        body as CreateKeyQuorumRequest;
      const id = ids.cuid2();
      insertAll(id, threshold, keys);
      const authorization_keys = keys.map((key) => ({ public_key: key, display_name: null }));
      return {
        id,
        display_name: null,
        authorization_threshold: threshold,
        authorization_keys,
        user_ids: null,
      };
    },

    signedBy(ownerId, { method, url, headers, body }) {
      const members = membersOf(ownerId);
      const [text] = canonicalPayloadTexts({
        method,
        urls: [`http://${headers.host}${url}`],
        body,
        headers: { 'service-app-id': credentials.appId },
      }) as [string];
      const payload = Buffer.from(text);
      const signatures = String(headers['service-authorization-signature']).split(',');
      const left = new Set(members.map(({ member }) => member));
      const signed: string[] = [];
      for (const each of signatures) {
        const signature = Buffer.from(each, 'base64');
        const key = [...left].find((candidate) =>
          verify('sha256', payload, keyObjectOf(candidate), signature),
        );
        if (key === undefined) continue;
        left.delete(key);
        signed.push(key);
        if (signed.length === members[0]?.threshold) {
          return signed.map((member) => hash('sha256', Buffer.from(member, 'base64')));
        }
      }
      throw new Error('the request lacks signatures');
    },
  };
}
