import type { CreateKeyQuorumRequest, User } from '../../generated/schemas.ts';
import type { SandboxKeyQuorum } from '../../sandbox/generated/schemas.ts';
import { shortened } from './names.ts';
import { userText } from './texts.ts';

/** A member of a key quorum: its key, user id or key quorum id. */
export type Member = Pick<SandboxKeyQuorum['members'][number], 'type' | 'id'>;

/** The content of the form of a key quorum. */
export interface QuorumDraft {
  readonly name: string;
  readonly threshold: number;
  readonly members: readonly Member[];
}

export const emptyDraft: QuorumDraft = { name: '', threshold: 1, members: [] };

export function draftOf({ display_name: name, threshold, members }: SandboxKeyQuorum): QuorumDraft {
  return { name: name ?? '', threshold, members: members.map(({ type, id }) => ({ type, id })) };
}

/**
 * Returns the body that creates or updates a key quorum. An update keeps the lists that its body omits, so the body has
 * all of them. A threshold above the number of members is lowered to that number.
 */
export function bodyOf(
  { name, threshold, members }: QuorumDraft,
  { isUpdate = false }: { readonly isUpdate?: boolean } = {},
): CreateKeyQuorumRequest {
  const idsOf = (type: Member['type']): string[] =>
    members.filter((member) => member.type === type).map(({ id }) => id);
  const [keys, users, quorums] = [idsOf('public_key'), idsOf('user'), idsOf('key_quorum')];
  return {
    ...(name.trim() === '' ? {} : { display_name: name.trim() }),
    authorization_threshold: Math.min(threshold, Math.max(1, members.length)),
    ...(keys.length > 0 || isUpdate ? { public_keys: keys } : {}),
    ...(users.length > 0 || isUpdate ? { user_ids: users } : {}),
    ...(quorums.length > 0 || isUpdate ? { key_quorum_ids: quorums } : {}),
  };
}

/** Everyone who can be a member of a key quorum. */
export interface People {
  /** The people who have the keys of the seed data. */
  readonly keys: readonly { readonly name: string; readonly public_key: string }[];
  readonly users: readonly User[];
  readonly quorums: readonly SandboxKeyQuorum[];
}

interface Choice {
  readonly member: Member;
  readonly text: string;
}

/**
 * Returns everyone who can be a member, in groups without empty ones. Key quorums with quorums inside cannot be
 * members.
 */
export function choicesOf(
  { keys, users, quorums }: People,
  stored: SandboxKeyQuorum | undefined,
  members: readonly Member[],
): { readonly title: string; readonly own: readonly Choice[] }[] {
  const known = new Set(keys.map(({ public_key: key }) => key));
  const others = members.filter(({ type, id }) => type === 'public_key' && !known.has(id));
  const inner = quorums.filter(
    ({ id, members: own }) => id !== stored?.id && !own.some(({ type }) => type === 'key_quorum'),
  );
  const groups = [
    {
      title: 'Keys',
      own: [
        ...keys.map(({ name, public_key: id }) => choice('public_key', id, name)),
        ...others.map(({ id }) => choice('public_key', id, shortened(id))),
      ],
    },
    { title: 'Users', own: users.map((user) => choice('user', user.id, userText(user))) },
    {
      title: 'Key quorums',
      own: inner.map((quorum) => choice('key_quorum', quorum.id, quorum.display_name ?? membersText(quorum))),
    },
  ];
  return groups.filter(({ own }) => own.length > 0);
}

/** Returns the members of a quorum by name. */
export function membersText({ members }: Pick<SandboxKeyQuorum, 'members'>): string {
  return members.map(({ id, name }) => name ?? shortened(id)).join(', ');
}

function choice(type: Member['type'], id: string, text: string): Choice {
  return { member: { type, id }, text };
}
