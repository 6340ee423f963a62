import type { SqlEntityManager } from '@mikro-orm/sql';
import { KeyQuorumEntity, KeyQuorumMemberEntity } from '../domain/access/key-quorums/key-quorum.entity.ts';
import { PolicyEntity } from '../domain/access/policies/policy.entity.ts';
import { LinkedAccountEntity } from '../domain/access/user-records/user.entity.ts';
import { WalletEntity } from '../domain/wallets/wallets/wallet.entity.ts';
import type { SandboxMember, SandboxNamed, SandboxOwner } from './generated/schemas.ts';

// The names of resources to which rows of lists refer. Each function reads all names of a page with one statement.

type Names = ReadonlyMap<string, string | null>;

/** The kinds of linked accounts whose identifier is a name, best first. */
const namingAccounts = ['email', 'phone', 'custom_auth'];

/** The names of users: an email address, a phone number, an id in the app's own login, or another public name. */
async function userNames(em: SqlEntityManager, ids: readonly string[]): Promise<Names> {
  if (ids.length === 0) return new Map();
  const accounts = await em.find(
    LinkedAccountEntity,
    { userId: { $in: [...new Set(ids)] } },
    {
      fields: ['userId', 'type', 'subject', 'username'],
      orderBy: { userId: 'asc', position: 'asc' },
      disableIdentityMap: true,
    },
  );
  const names = new Map<string, string | null>();
  for (const [userId, own] of Map.groupBy(accounts, (account) => account.userId)) {
    const best = namingAccounts.map((type) => own.find((account) => account.type === type)?.subject);
    const others = own.map(({ username }) => username);
    names.set(userId, [...best, ...others].find((name) => name != null) ?? null);
  }
  return names;
}

/** The display names of wallets. Wallets without a name have the entry null. */
export async function walletNames(em: SqlEntityManager, ids: readonly string[]): Promise<Names> {
  if (ids.length === 0) return new Map();
  const wallets = await em.find(
    WalletEntity,
    { id: { $in: [...new Set(ids)] } },
    { fields: ['id', 'displayName'], disableIdentityMap: true },
  );
  return new Map(wallets.map(({ id, displayName }) => [id, displayName]));
}

/** The names of policies. */
export async function policyNames(em: SqlEntityManager, ids: readonly string[]): Promise<Names> {
  if (ids.length === 0) return new Map();
  const policies = await em.find(
    PolicyEntity,
    { id: { $in: [...new Set(ids)] } },
    { fields: ['id', 'name'], disableIdentityMap: true },
  );
  return new Map(policies.map(({ id, name }) => [id, name]));
}

/** The id with its name. */
export function named(id: string, names: Names): SandboxNamed {
  return { id, name: names.get(id) ?? null };
}

/**
 * The key quorums with these ids.
 *
 * @param keyNames the people who have the keys of the seed data, by public key.
 */
export async function ownersOf(
  em: SqlEntityManager,
  ids: readonly string[],
  keyNames: Names,
): Promise<ReadonlyMap<string, SandboxOwner>> {
  if (ids.length === 0) return new Map();
  const distinct = [...new Set(ids)];
  const quorums = await em.find(
    KeyQuorumEntity,
    { id: { $in: distinct } },
    { fields: ['id', 'displayName', 'authorizationThreshold'], disableIdentityMap: true },
  );
  const members = await em.find(
    KeyQuorumMemberEntity,
    { keyQuorumId: { $in: distinct } },
    { orderBy: { keyQuorumId: 'asc', position: 'asc' }, disableIdentityMap: true },
  );
  const membersOf = (kind: string) => members.filter((row) => row.kind === kind).map(({ member }) => member);
  const users = await userNames(em, membersOf('user'));
  const inner = membersOf('key_quorum');
  const innerNames =
    inner.length === 0
      ? []
      : await em.find(
          KeyQuorumEntity,
          { id: { $in: [...new Set(inner)] } },
          { fields: ['id', 'displayName'], disableIdentityMap: true },
        );
  const names: Readonly<Record<string, Names>> = {
    public_key: keyNames,
    user: users,
    key_quorum: new Map(innerNames.map(({ id, displayName }) => [id, displayName])),
  };
  const byQuorum = Map.groupBy(members, ({ keyQuorumId }) => keyQuorumId);
  return new Map(
    quorums.map(({ id, displayName, authorizationThreshold }) => {
      const own = (byQuorum.get(id) ?? []).map(({ kind, member }) => ({
        type: kind as SandboxMember['type'],
        ...named(member, names[kind] ?? new Map()),
      }));
      const owner = {
        key_quorum_id: id,
        display_name: displayName,
        threshold: authorizationThreshold ?? own.length,
        size: own.length,
        members: own,
      };
      return [id, owner];
    }),
  );
}
