import type { SqlEntityManager } from '@mikro-orm/sql';
import { AggregationEntity } from '../domain/access/aggregations/aggregation.entity.ts';
import { ConditionSetEntity } from '../domain/access/condition-sets/condition-set.entity.ts';
import { KeyQuorumEntity, KeyQuorumMemberEntity } from '../domain/access/key-quorums/key-quorum.entity.ts';
import { PolicyEntity } from '../domain/access/policies/policy.entity.ts';
import { LinkedAccountEntity } from '../domain/access/user-records/user.entity.ts';
import { signersOf, WalletEntity } from '../domain/wallets/wallets/wallet.entity.ts';
import { normalizeAddress } from '../engine/assets/addresses.ts';
import { type AmountUnit, unitOf } from '../engine/assets/amount-units.ts';
import type { PolicyDecision } from '../engine/policy/evaluate.ts';
import type { ReadResources, RefusedResources } from '../ports/refusals.ts';
import type { PolicyAnalysis } from './control-plane.ts';
import type {
  SandboxMember,
  SandboxNamed,
  SandboxNamedWallet,
  SandboxOwner,
  SandboxSubject,
} from './generated/schemas.ts';
import { denialBehindFunds } from './policy-trace.ts';
import { nearestName } from './why/nearest.ts';
import { listOf } from './why/problem.ts';

// Reads the names of resources to which the rows of lists refer. Each function reads all names for a page with one
// statement.

type Names = ReadonlyMap<string, string | null>;

/** The kinds of linked accounts that can serve as a user's name, best first. */
const namingAccounts = ['email', 'phone', 'custom_auth'];

/**
 * Returns the names of users: an email address, a phone number, an id in the app's own login, or another public name.
 */
async function userNames(em: SqlEntityManager, ids: readonly string[], appId?: string): Promise<Names> {
  if (ids.length === 0) return new Map();
  const accounts = await em.find(
    LinkedAccountEntity,
    { userId: { $in: [...new Set(ids)] }, ...ofApp(appId) },
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

/** Returns the condition of rows of one app, or of all apps. */
function ofApp(appId: string | undefined): { readonly appId?: string } {
  return appId === undefined ? {} : { appId };
}

/** Returns the display names of wallets. A wallet without a name has the entry null. */
export async function walletNames(em: SqlEntityManager, ids: readonly string[]): Promise<Names> {
  if (ids.length === 0) return new Map();
  const wallets = await em.find(
    WalletEntity,
    { id: { $in: [...new Set(ids)] } },
    { fields: ['id', 'displayName'], disableIdentityMap: true },
  );
  return new Map(wallets.map(({ id, displayName }) => [id, displayName]));
}

export async function policyNames(
  em: SqlEntityManager,
  ids: readonly string[],
  appId?: string,
): Promise<Names> {
  if (ids.length === 0) return new Map();
  const policies = await em.find(
    PolicyEntity,
    { id: { $in: [...new Set(ids)] }, ...ofApp(appId) },
    { fields: ['id', 'name'], disableIdentityMap: true },
  );
  return new Map(policies.map(({ id, name }) => [id, name]));
}

/** Returns the display names of key quorums. */
async function quorumNames(em: SqlEntityManager, ids: readonly string[]): Promise<Names> {
  if (ids.length === 0) return new Map();
  const quorums = await em.find(
    KeyQuorumEntity,
    { id: { $in: [...new Set(ids)] } },
    { fields: ['id', 'displayName'], disableIdentityMap: true },
  );
  return new Map(quorums.map(({ id, displayName }) => [id, displayName]));
}

export function named(id: string, names: Names): SandboxNamed {
  return { id, name: names.get(id) ?? null };
}

/**
 * Returns the key quorums with these ids, each with its members.
 *
 * @param keyNames the names of the people who have the seed data's keys, by public key.
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
  const names: Readonly<Record<string, Names>> = {
    public_key: keyNames,
    user: users,
    key_quorum: await quorumNames(em, membersOf('key_quorum')),
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

/**
 * Returns what explanations of a refusal need: the names of the app's resources that it mentions, whether its wallet is
 * archived, and the policy decision that would deny the request if the wallet had the funds that it lacks. The wallet
 * is the one in the path, or the one with the `address` of the body.
 *
 * INVARIANT: a hint contains no name of another app's resource, because the client reads it.
 */
export async function refusedResources(
  em: SqlEntityManager,
  refused: Refused,
  { analysis, keyNames }: { readonly analysis: PolicyAnalysis; readonly keyNames: Names },
): Promise<RefusedResources> {
  const {
    appId,
    pathParameters: { wallet_id: walletId, user_id: userId, policy_id: policyId },
    data,
    body,
  } = refused;
  const names = new Map<string, string>();
  const add = (found: Names): void => {
    for (const [id, name] of found) if (name !== null) names.set(id, name);
  };
  const { address } = (body ?? {}) as { address?: unknown };
  const named = walletId === undefined ? byAddress(address) : byId(walletId);
  const wallet =
    named === undefined
      ? null
      : await em.findOne(
          WalletEntity,
          { appId, ...named },
          { orderBy: { createdAtMs: 'desc', id: 'desc' }, disableIdentityMap: true },
        );
  if (wallet !== null) {
    add(new Map([walletId ?? wallet.id, wallet.address].map((each) => [each, wallet.displayName])));
  }
  const check = data.signature_check as SignatureCheck | undefined;
  const userIds = usersIn(userId, data, check);
  const users = await userNames(em, userIds.map(storedUserId), appId);
  add(new Map(userIds.map((id) => [id, users.get(storedUserId(id)) ?? null])));
  const owners = await ownersOf(em, quorumsIn(check), keyNames);
  add(new Map([...owners].map(([id, owner]) => [id, owner.display_name])));
  const members = new Map([...owners].map(([id, owner]) => [id, membersText(owner)]));
  // A signer with policies of its own is not bound by the policy of the wallet.
  const isBound =
    wallet !== null &&
    signersOf({ additional_signers: wallet.additionalSigners }).every(
      ({ overridePolicyIds }) => overridePolicyIds === undefined,
    );
  const denial = isBound ? await denialBehindFunds(refused, wallet.id, analysis) : undefined;
  const decision = (data.decision as PolicyDecision | undefined) ?? denial;
  add(
    await policyNames(
      em,
      [policyId, decision?.policy_id].filter((each) => each !== undefined),
      appId,
    ),
  );
  const conditions = decision?.units.flatMap(({ rules }) => rules.flatMap((rule) => rule.conditions)) ?? [];
  const totals = conditions.flatMap(({ field }) =>
    field.startsWith(AGGREGATION) ? [field.slice(AGGREGATION.length)] : [],
  );
  const units = new Map<string, AmountUnit>();
  if (totals.length > 0) {
    const found = await em.find(AggregationEntity, { id: { $in: totals } }, { disableIdentityMap: true });
    add(new Map(found.map((each) => [each.id, each.name])));
    for (const { id, definition } of found) {
      const unit = unitOf(definition.metric, definition.conditions ?? []);
      if (unit !== undefined) units.set(id, unit);
    }
  }
  const sets = conditions.filter(({ operator }) => operator === 'in_condition_set');
  const setIds = sets.flatMap(({ value }) => value);
  if (setIds.length > 0) {
    const found = await em.find(ConditionSetEntity, { id: { $in: setIds } }, { disableIdentityMap: true });
    add(new Map(found.map((set) => [set.id, set.name])));
  }
  const atMs = wallet?.archivedAtMs ?? null;
  const archived = wallet === null || atMs === null ? undefined : { walletId: wallet.id, atMs };
  const nearestWallet = wallet === null ? await nearestWalletTo(em, appId, walletId) : undefined;
  return { names, members, units, archived, nearestWallet, denial };
}

/** Returns the `ext_wal_` id of the wallet of the app that is spelled most similarly. */
async function nearestWalletTo(em: SqlEntityManager, appId: string, id = ''): Promise<string | undefined> {
  if (!id.startsWith(EXTERNAL_PREFIX)) return undefined;
  const wallets = await em.find(
    WalletEntity,
    { appId, externalId: { $ne: null }, archivedAtMs: null },
    { fields: ['id', 'externalId'], orderBy: { id: 'asc' }, limit: 1_000, disableIdentityMap: true },
  );
  const known = wallets.map(({ externalId }) => externalId ?? '');
  const nearest = nearestName(id.slice(EXTERNAL_PREFIX.length), known);
  return nearest === undefined ? undefined : `${EXTERNAL_PREFIX}${nearest}`;
}

/** The members of `data.signature_check` and of `data` that name users and key quorums. */
interface SignatureCheck {
  readonly signatures?: readonly { readonly key_quorum_ids?: readonly string[]; readonly reason?: string }[];
  readonly parties?: readonly {
    readonly key_quorum_id: string;
    readonly users?: readonly { readonly user_id: string }[];
    readonly key_quorums?: readonly { readonly key_quorum_id: string }[];
  }[];
}

const USER_ID = /did:[a-z0-9-]+:[a-z0-9-]+/g;

function usersIn(
  pathId: string | undefined,
  { customer }: RefusedData,
  { parties = [], signatures = [] }: SignatureCheck = {},
): string[] {
  const { type, id } = (customer ?? {}) as { type?: string; id?: string };
  return [
    ...(pathId === undefined ? [] : [pathId]),
    ...(type === 'user' && id !== undefined ? [id] : []),
    ...parties.flatMap(({ users = [] }) => users.map(({ user_id: userId }) => userId)),
    ...signatures.flatMap(({ reason = '' }) => reason.match(USER_ID) ?? []),
  ];
}

function quorumsIn({ parties = [], signatures = [] }: SignatureCheck = {}): string[] {
  return [
    ...parties.flatMap(({ key_quorum_id: id, key_quorums: nested = [] }) => [
      id,
      ...nested.map((each) => each.key_quorum_id),
    ]),
    ...signatures.flatMap(({ key_quorum_ids: ids = [] }) => ids),
  ];
}

const MAX_MEMBERS = 4;
const SHOWN_ID = 8;

/** Names the members of a key quorum: `alice, bob and carol`. A member without a name has the end of its id. */
function membersText({ members }: SandboxOwner): string {
  const shown = members
    .slice(0, MAX_MEMBERS)
    .map(({ name, id }) => name?.toLowerCase() ?? `…${id.slice(-SHOWN_ID)}`);
  const more = members.length - shown.length;
  return listOf(more > 0 ? [...shown, `${more} more`] : shown);
}

type Refused = Parameters<ReadResources>[0];
type RefusedData = Refused['data'];

function byId(walletId: string): { readonly id: string } | { readonly externalId: string } {
  return walletId.startsWith(EXTERNAL_PREFIX)
    ? { externalId: walletId.slice(EXTERNAL_PREFIX.length) }
    : { id: walletId };
}

function byAddress(address: unknown): { readonly address: string } | undefined {
  return typeof address === 'string' ? { address: normalizeAddress(address) } : undefined;
}

/** The resources to which a row of a list refers. */
export interface References {
  /** The app to which external ids of wallets belong; null if the app is unknown. */
  readonly appId: string | null;
  /** The resource that the row is about. If it refers to several, the most specific one. */
  readonly subject: { readonly type: string; readonly id: string } | undefined;
  /** The wallet's id, or `ext_wal_` and its external id. */
  readonly walletId: string | undefined;
  readonly userId: string | undefined;
}

/** The resources of a row with their names. */
interface NamedReferences {
  readonly subject: SandboxSubject | null;
  readonly wallet: SandboxNamedWallet | null;
  readonly user: SandboxNamed | null;
}

const AGGREGATION = 'aggregation.';
const EXTERNAL_PREFIX = 'ext_wal_';

/** Converts a user's id. Ids have the configured prefix in requests, and `service` in the database. */
const storedUserId = (id: string): string => id.replace(/^did:[a-z0-9-]+:/, 'did:service:');

/**
 * Reads the names of everything to which the rows of a page refer, with one statement per kind of resource. Returns a
 * function that looks up the names for a row.
 */
export async function readReferences(
  em: SqlEntityManager,
  rows: readonly References[],
): Promise<(row: References) => NamedReferences> {
  const walletIds = rows.flatMap(({ walletId }) => walletId ?? []);
  const findWallet = await readWallets(em, walletIds);
  const users = await userNames(
    em,
    rows.flatMap(({ userId }) => (userId === undefined ? [] : storedUserId(userId))),
  );
  const idsOf = (type: string): string[] =>
    rows.flatMap(({ subject }) => (subject?.type === type ? subject.id : []));
  const policies = await policyNames(em, idsOf('policy'));
  const quorums = await quorumNames(em, idsOf('key_quorum'));
  return (row) => {
    const { subject, walletId, userId } = row;
    const wallet = walletId === undefined ? undefined : findWallet(walletId, row.appId);
    const user = userId === undefined ? null : { id: userId, name: users.get(storedUserId(userId)) ?? null };
    const names: Readonly<Record<string, string | null | undefined>> = {
      wallet: wallet?.name,
      user: user?.name,
      policy: policies.get(subject?.id ?? ''),
      key_quorum: quorums.get(subject?.id ?? ''),
    };
    const id = subject?.type === 'wallet' ? (wallet?.id ?? subject.id) : subject?.id;
    return {
      subject:
        subject === undefined || id === undefined
          ? null
          : { type: subject.type, id, name: names[subject.type] ?? null },
      wallet: wallet ?? null,
      user,
    };
  };
}

/** Reads wallets by their ids and external ids. Returns a function that looks up one of them. */
async function readWallets(
  em: SqlEntityManager,
  ids: readonly string[],
): Promise<(id: string, appId: string | null) => SandboxNamedWallet | undefined> {
  const [external, own] = [new Set<string>(), new Set<string>()];
  for (const id of ids) {
    if (id.startsWith(EXTERNAL_PREFIX)) external.add(id.slice(EXTERNAL_PREFIX.length));
    else own.add(id);
  }
  const conditions = [
    ...(own.size === 0 ? [] : [{ id: { $in: [...own] } }]),
    ...(external.size === 0 ? [] : [{ externalId: { $in: [...external] } }]),
  ];
  if (conditions.length === 0) return () => undefined;
  const rows = await em.find(
    WalletEntity,
    { $or: conditions },
    {
      fields: ['id', 'appId', 'externalId', 'displayName', 'address', 'chainType'],
      disableIdentityMap: true,
    },
  );
  const found = new Map<string, SandboxNamedWallet>();
  for (const { id, appId, externalId, displayName, address, chainType } of rows) {
    const wallet = { id, name: displayName, address, chain_type: chainType };
    found.set(id, wallet);
    if (externalId !== null) found.set(`${appId}/${EXTERNAL_PREFIX}${externalId}`, wallet);
  }
  return (id, appId) => found.get(id) ?? found.get(`${appId}/${id}`);
}
