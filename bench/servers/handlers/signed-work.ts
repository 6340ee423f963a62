import { createPublicKey, hash, type KeyObject, verify } from 'node:crypto';
import type { Database } from 'better-sqlite3';
import { type QuorumBase, quorumReference } from '../../../src/engine/authorization/quorum-records.ts';
import { canonicalPayloadTexts } from '../../../src/engine/authorization/request-signatures.ts';
import type { AuthorizedUse, WalletAuthority } from '../../../src/engine/authorization/wallet-authority.ts';
import { verifyP256 } from '../../../src/engine/crypto/p256.ts';
import type { CreateKeyQuorumRequest } from '../../../src/generated/schemas.ts';
import type { Ids } from '../../../src/ports/runtime.ts';
import { credentials } from '../credentials.ts';
import type { WorkInput } from './work.ts';

interface Member {
  readonly threshold: number;
  readonly member: string;
}

/** Who has signed a request. */
interface Signed {
  /** The fingerprints of their keys. */
  readonly signers: readonly string[];
  /** What shows the vault that they have, where it is asked to verify it. */
  readonly use?: AuthorizedUse | undefined;
}

interface QuorumWork {
  createKeyQuorum(input: WorkInput): unknown;
  /** What the key of a wallet with this owner is sealed under; undefined where the vault verifies nothing. */
  authorityOf(ownerId: string): WalletAuthority | undefined;
  /** Verifies as many signatures as the owner of a wallet requires. */
  signedBy(ownerId: string, input: WorkInput): Signed;
}

/**
 * Key quorums of the bare server: the least that counts the signatures of their members.
 *
 * @param isVerifiedByVault has the vault verify them too, by its own record of the key quorum, as in Custos.
 */
export function quorumWork(
  database: Database,
  { ids, isVerifiedByVault }: { readonly ids: Pick<Ids, 'cuid2'>; readonly isVerifiedByVault: boolean },
): QuorumWork {
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
  // The vault does not verify again what was verified in this process a moment ago.
  const isSignedWith = (key: string, payload: Uint8Array, signature: Uint8Array): boolean =>
    isVerifiedByVault
      ? verifyP256(key, payload, signature)
      : verify('sha256', payload, keyObjectOf(key), signature);
  const baseOf = (id: string, members: readonly Member[]): QuorumBase => ({
    ...{ appId: credentials.appId, id, threshold: members[0]?.threshold ?? null },
    ...{ publicKeys: members.map(({ member }) => member), userIds: [], quorums: [] },
  });
  const authorityOf = (base: QuorumBase): WalletAuthority => ({
    ...{ owner: quorumReference(base), signers: [], isAutomated: false },
  });

  return {
    authorityOf: (ownerId) =>
      isVerifiedByVault ? authorityOf(baseOf(ownerId, membersOf(ownerId))) : undefined,

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
        const key = [...left].find((candidate) => isSignedWith(candidate, payload, signature));
        if (key === undefined) continue;
        left.delete(key);
        signed.push(key);
        if (signed.length === members[0]?.threshold) {
          const signers = signed.map((member) => hash('sha256', Buffer.from(member, 'base64')));
          if (!isVerifiedByVault) return { signers };
          const base = baseOf(ownerId, members);
          const evidence = { requests: [{ payload: text, signatures }] };
          const quorums = [{ base, changes: [] }];
          return { signers, use: { authority: authorityOf(base), quorums, userKeys: {}, evidence } };
        }
      }
      throw new Error('the request lacks signatures');
    },
  };
}
