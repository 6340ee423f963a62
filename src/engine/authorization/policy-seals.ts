import { hash } from 'node:crypto';
import type { RuleInput } from '../policy/compile.ts';
import {
  type KnownQuorums,
  ownerAfter,
  type ReadQuorums,
  requireQuorumSignature,
  type SentSeal,
} from './quorum-records.ts';
import {
  type Evidence,
  readEvidence,
  requireOccasion,
  type SignedRequestContent,
  UnauthorizedUseError,
} from './signed-evidence.ts';

/**
 * The content of a policy, under which its secret is sealed.
 *
 * INVARIANT: while the policy has an owner, the content changes only by requests that the owner has signed.
 */
export interface PolicyContent {
  readonly appId: string;
  readonly id: string;
  readonly chainType: string;
  /** The reference of the key quorum that owns the policy; null for a policy that no longer has an owner. */
  readonly owner: string | null;
  readonly rules: readonly RuleInput[];
}

/** A policy's content, and the secret that is sealed under it. */
export interface PolicyRecord {
  readonly id: string;
  /** JSON of the `PolicyContent`. */
  readonly content: string;
  /** The sealed secret. */
  readonly seal: SentSeal;
}

/** A change of a policy, with the evidence that its owner has signed it. */
export interface PolicyChange extends KnownQuorums {
  /** JSON of the `PolicyContent` before the change. */
  readonly content: string;
  readonly evidence: Evidence;
  /**
   * The ids of the rules that the request adds, in order. They are not part of the signed request, because the server
   * generates them.
   */
  readonly ruleIds: readonly string[];
}

/** Returns the SHA-256 digest of a policy's content, in hex. */
export function policyDigest(content: string): string {
  return hash('sha256', content);
}

/** Returns the name of a policy's secret, its SHA-256 in hex. Wallets pin policies by this name. */
export function sealName(secret: Uint8Array): string {
  return hash('sha256', secret);
}

/**
 * Returns the policy's content after the change that a request makes, and requires that the policy's owner has signed
 * the request.
 *
 * @throws UnauthorizedUseError
 */
export async function changedPolicy(
  change: PolicyChange & ReadQuorums,
  occasion: { readonly policyId: string; readonly appId: string; readonly nowMs: number },
): Promise<PolicyContent> {
  const before = JSON.parse(change.content) as PolicyContent;
  const request = readEvidence(change.evidence);
  requireOccasion(request, occasion);
  if (before.owner !== null) {
    await requireQuorumSignature(change, change.evidence, { parties: [before.owner], nowMs: occasion.nowMs });
  }
  const [, named, isAboutRules, ruleId] =
    /^\/v1\/policies\/([^/]+)(\/rules(?:\/([^/]+))?)?$/.exec(request.path) ?? [];
  if (named !== occasion.policyId)
    throw new UnauthorizedUseError('the request was signed for a different policy');
  if (isAboutRules === undefined) return changedWhole(before, request, change);
  const rules = changedRules(before.rules, request, { ruleId, newId: change.ruleIds[0] });
  return { ...before, rules: requireDistinct(rules) };
}

/** Rejects rules with equal ids. With them, a later request that deletes one rule would delete two. */
function requireDistinct(rules: readonly RuleInput[]): readonly RuleInput[] {
  if (new Set(rules.map(({ id }) => id)).size === rules.length) return rules;
  throw new UnauthorizedUseError('expected rules with different ids');
}

function changedWhole(
  before: PolicyContent,
  { method, body }: SignedRequestContent,
  { quorums, ruleIds }: PolicyChange,
): PolicyContent {
  if (method !== 'PATCH') throw new UnauthorizedUseError('expected a change of a policy');
  const { rules } = body;
  return {
    ...before,
    owner: ownerAfter(body, before.owner, quorums),
    rules: Array.isArray(rules)
      ? requireDistinct(rules.map((rule, index) => ruleOf(rule, ruleIds[index])))
      : before.rules,
  };
}

/**
 * Applies a request that adds, replaces or deletes one rule.
 *
 * NOTE: the order of rules has no meaning. The rule need not exist: PATCH then adds it, and DELETE changes nothing.
 */
function changedRules(
  rules: readonly RuleInput[],
  { method, body }: SignedRequestContent,
  { ruleId, newId }: { readonly ruleId: string | undefined; readonly newId: string | undefined },
): readonly RuleInput[] {
  const others = rules.filter(({ id }) => id !== ruleId);
  if (method === 'POST' && ruleId === undefined) return [...rules, ruleOf(body, newId)];
  if (method === 'PATCH' && ruleId !== undefined) return [...others, ruleOf(body, ruleId)];
  if (method === 'DELETE' && ruleId !== undefined) return others;
  throw new UnauthorizedUseError('expected a change of a rule');
}

function ruleOf(rule: unknown, id: string | undefined): RuleInput {
  if (id === undefined) throw new UnauthorizedUseError('expected an id for each new rule');
  const { name, method, action, conditions } = rule as RuleInput;
  return { id, name, method, action, conditions };
}

/** Pins a policy, so that it cannot be replaced by another policy. */
export interface PolicyPin {
  readonly id: string;
  /** The name of the policy's secret. */
  readonly seal: string;
}

/**
 * The pinned policies of a wallet. Null stands for no policy, or for a policy that never had an owner: such a policy
 * cannot be pinned.
 */
export interface WalletPolicies {
  /** The wallet's own policy. */
  readonly wallet: PolicyPin | null;
  /**
   * One entry per additional signer, in order: the pin of the signer's own policy, or 'wallet' if the wallet's policy
   * applies.
   */
  readonly signers: readonly (PolicyPin | 'wallet' | null)[];
}

/** Finds the pin of a policy by the policy's id. Returns null for a policy without a secret. */
type FindPin = (policyId: string) => PolicyPin | null;

/** The fields of a body that concern the policies of a wallet. */
interface PolicyFields {
  readonly policy_ids?: unknown;
  readonly additional_signers?: unknown;
}

/** Returns the policies of a wallet that pins none. */
export function noPolicies(signers: number): WalletPolicies {
  return { wallet: null, signers: Array.from({ length: signers }, () => null) };
}

/** Returns the policies after a change. Policies that the body names again keep their pins. */
export function policiesAfter(before: WalletPolicies, body: PolicyFields, find: FindPin): WalletPolicies {
  const pinned = [before.wallet, ...before.signers].filter((pin) => pin !== null && pin !== 'wallet');
  const known = new Map(pinned.map((pin) => [pin.id, pin]));
  const pinOf = (ids: unknown): PolicyPin | null => {
    const id = onlyId(ids);
    return id === undefined ? null : (known.get(id) ?? find(id));
  };
  const { policy_ids: ids, additional_signers: signers } = body;
  return {
    wallet: ids === undefined ? before.wallet : pinOf(ids),
    signers: Array.isArray(signers)
      ? signers.map(({ override_policy_ids: own }) => (own === undefined ? 'wallet' : pinOf(own)))
      : before.signers,
  };
}

/**
 * Returns the policies if at least one is pinned, else undefined: a wallet without pins is sealed in the form that
 * wallets had before pins existed.
 */
export function ifPinned(policies: WalletPolicies): WalletPolicies | undefined {
  const isPin = (pin: PolicyPin | 'wallet' | null): boolean => pin !== null && pin !== 'wallet';
  return isPin(policies.wallet) || policies.signers.some(isPin) ? policies : undefined;
}

/**
 * Returns the policy of the party at this index, or null if none is pinned for it. Index 0 is the owner, then the
 * signers follow.
 */
export function policyOfParty({ wallet, signers }: WalletPolicies, index: number): PolicyPin | null {
  if (index === 0) return wallet;
  const own = signers[index - 1];
  // INVARIANT: there is one entry per signer. A missing entry must not count as no policy.
  if (own === undefined) throw new UnauthorizedUseError('expected the policies of each signer');
  return own === 'wallet' ? wallet : own;
}

function onlyId(ids: unknown): string | undefined {
  if (Array.isArray(ids) && ids.length <= 1 && ids.every((id) => typeof id === 'string')) return ids[0];
  throw new UnauthorizedUseError('expected at most one policy');
}
