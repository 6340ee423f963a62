import { hash } from 'node:crypto';
import { canonicalJson } from '../crypto/encoding.ts';
import {
  ifPinned,
  noPolicies,
  type PolicyPin,
  type PolicyRecord,
  policiesAfter,
  policyDigest,
  policyOfParty,
  type WalletPolicies,
} from './policy-seals.ts';
import { type AgreedPolicy, requireAllowed } from './provable-rules.ts';
import {
  type KnownQuorums,
  ownerAfter,
  type QuorumRecord,
  type ReadQuorums,
  referenceOfId,
  requireQuorumSignature,
} from './quorum-records.ts';
import { type BuildingSettings, spendingOf } from './requested/built-part.ts';
import {
  accountsOf,
  contractOwnersOf,
  isTaskOfChain,
  isTransactionTask,
  requireRequested,
  type WalletTask,
} from './requested/match-task.ts';
import { requestedAction } from './requested/requested-action.ts';
import { requireFeesBelow } from './requested/requested-fees.ts';
import {
  type Evidence,
  evaluationTimeOf,
  readEvidence,
  requireOccasion,
  type SignedRequestContent,
  UnauthorizedUseError,
} from './signed-evidence.ts';
import type { Spending } from './signing-budget.ts';

/**
 * The parties that may use a wallet. The wallet's key is sealed under the digest of this object, so it cannot be
 * opened under another authority.
 *
 * INVARIANT: while the wallet has an owner, it changes only by requests that the owner has signed.
 */
export interface WalletAuthority {
  /** The reference of the key quorum that owns the wallet; null for a wallet without an owner. */
  readonly owner: string | null;
  /** The references of the key quorums that may use the wallet instead of the owner. */
  readonly signers: readonly string[];
  /** Whether the owner has allowed automations, which use the wallet without a signed request. */
  readonly isAutomated: boolean;
  /** The pinned policies. Undefined if no policy is pinned. */
  readonly policies?: WalletPolicies | undefined;
}

/** A caller's claim that it may use a wallet's key. Nothing in it has been verified. */
export interface KeyUseClaim extends KnownQuorums {
  readonly authority: WalletAuthority;
  /**
   * The signed requests, which show who authorized the use. Undefined for an automation, and for an intent whose
   * signatures an earlier version collected.
   */
  readonly evidence?: Evidence | undefined;
  /** The address of the wallet, if a policy applies or the task names an account. It is compared with the key. */
  readonly address?: string | undefined;
  /** The pinned policies that may apply. */
  readonly policies?: readonly PolicyRecord[] | undefined;
  /** The time at which the caller evaluated the policies, Unix ms. */
  readonly judgedAtMs?: number | undefined;
  /**
   * Only for a change: the caller's statement about the wallet's policies, and about the policies that the body
   * names.
   */
  readonly pins?: { readonly before: WalletPolicies; readonly named: readonly PolicyPin[] } | undefined;
}

/** A wallet and the time at which it is used. */
export interface UseOccasion {
  readonly walletId: string;
  readonly appId: string;
  readonly chainType: string;
  /** Unix ms. */
  readonly nowMs: number;
}

/** Returns the SHA-256 of the canonical JSON, in hex. */
export function authorityDigest({ owner, signers, isAutomated, policies }: WalletAuthority): string {
  const pinned = policies === undefined ? {} : { policies };
  return hash('sha256', canonicalJson({ owner, signers, isAutomated, ...pinned }));
}

/**
 * Opens the secret of a policy, which is sealed under the content with this digest. Returns the secret's name, which a
 * `PolicyPin` has as `seal`.
 */
export type OpenPolicySecret = (policy: PolicyRecord, digest: string) => Promise<string>;

interface Authorizing {
  readonly task: WalletTask;
  readonly openPolicySecret: OpenPolicySecret;
  /**
   * Undefined if the server itself has the keys. Fees then have no ceilings, and transactions that the server builds
   * are not compared.
   */
  readonly building?: BuildingSettings | undefined;
}

/** What must be checked or counted once the key is open. */
interface AuthorizedTask {
  /** The wallet's address according to the caller, for policies and for tasks that name an account. */
  readonly addresses: readonly string[];
  /**
   * The part of the signing budget that the signature uses. It is counted after the key has been opened, because
   * until then the authority is only a claim of the caller.
   */
  readonly spending?: Spending | undefined;
}

/**
 * For a wallet with an owner, requires three things: the owner, or for signing also a signer, has signed a request for
 * this task; the policy that is pinned for that party allows it; and the filled-in fee is within the ceilings. A
 * transaction of an automation only needs a fee within the ceilings. A wallet without an owner needs nothing.
 *
 * @throws UnauthorizedUseError; NotComparableError; FeeAboveCeilingError; SigningInputError and other parser errors
 * for malformed input.
 */
export async function requireAuthorizedTask(
  claim: KeyUseClaim & ReadQuorums,
  occasion: UseOccasion,
  { task, openPolicySecret, building }: Authorizing,
): Promise<AuthorizedTask> {
  const { authority, evidence } = claim;
  const nothingToCheck = { addresses: [] };
  const feeCeilings = building?.feeCeilings;
  // No signature is needed. A key with an owner cannot be opened under this authority, so it cannot be used here.
  if (authority.owner === null) return nothingToCheck;
  if (!isTaskOfChain(task, occasion.chainType)) {
    throw new UnauthorizedUseError(`expected a method of \`${occasion.chainType}\``);
  }
  if (evidence === undefined) {
    if (authority.isAutomated && isTransactionTask(task)) {
      if (feeCeilings !== undefined) requireFeesBelow(undefined, task, feeCeilings);
      return { addresses: contractOwnersOf(task) };
    }
    throw new UnauthorizedUseError('expected a request that the owner has signed');
  }
  const request = readEvidence(evidence);
  requireOccasion(request, occasion);
  const subpath = subpathOf(request, occasion);
  const { chainType, appId } = occasion;
  const builtPart = requireRequested(request, { subpath, chainType, appId, building }, task);
  if (feeCeilings !== undefined) requireFeesBelow({ body: request.body, subpath }, task, feeCeilings);
  const parties = task.kind === 'sign' ? [authority.owner, ...authority.signers] : [authority.owner];
  const partyIndex = await requireQuorumSignature(claim, evidence, { parties, nowMs: occasion.nowMs });
  const policyPin = authority.policies === undefined ? null : policyOfParty(authority.policies, partyIndex);
  const addresses = builtPart?.accounts ?? accountsOf(request, task);
  // An automated wallet signs transactions without a signed request, too. Counting those with one would prevent
  // nothing.
  const isUncounted = authority.isAutomated && isTransactionTask(task);
  const spent = isUncounted
    ? undefined
    : spendingOf({ body: request.body, subpath, builtPart }, task, feeCeilings);
  const spending = spent && {
    ...{ ...spent, walletId: occasion.walletId, party: parties[partyIndex]! },
    ...{ request: { ...request, expiryMs: request.expiryMs ?? null }, expiryMs: request.expiryMs },
  };
  if (policyPin === null) return { addresses, spending };
  const { address } = claim;
  if (typeof address !== 'string') throw new UnauthorizedUseError('expected the address of the wallet');
  const policy = await openPinned(claim, policyPin, openPolicySecret);
  const known = await requestedAction({ request, subpath, builtPart }, task, { chainType, address });
  requireAllowed(policy, known, evaluationTimeOf(claim.judgedAtMs, occasion.nowMs));
  return { addresses: [...addresses, address], spending };
}

/**
 * Returns the pinned policy. The pin has the name of the policy's secret, which opens only under the content to which
 * the policy's owner has agreed.
 */
async function openPinned(
  { policies = [] }: KeyUseClaim,
  { id, seal: pinnedName }: PolicyPin,
  openPolicySecret: OpenPolicySecret,
): Promise<AgreedPolicy> {
  const policy = policies.find((each) => each.id === id);
  if (policy !== undefined) {
    const digest = policyDigest(policy.content);
    const name = await openPolicySecret(policy, digest);
    if (name === pinnedName) return { content: policy.content, digest };
  }
  throw new UnauthorizedUseError(`expected the policy \`${id}\` as its owner has agreed to it`);
}

/** Returns the authority after a request that changes who may use a wallet. Requires that the owner has signed it. */
export async function changedAuthority(
  claim: KeyUseClaim & ReadQuorums,
  occasion: UseOccasion,
): Promise<WalletAuthority> {
  const { authority, quorums, evidence } = claim;
  if (evidence === undefined) throw new UnauthorizedUseError('expected a request that the owner has signed');
  const request = readEvidence(evidence);
  requireOccasion(request, occasion);
  const subpath = subpathOf(request, occasion);
  if (authority.owner !== null) {
    await requireQuorumSignature(claim, evidence, { parties: [authority.owner], nowMs: occasion.nowMs });
  }
  if (attachesAutomations(request, subpath)) return { ...authority, isAutomated: true };
  if (request.method !== 'PATCH' || subpath !== '')
    throw new UnauthorizedUseError('expected a change of a wallet');
  const owner = ownerAfter(request.body, authority.owner, quorums);
  const { additional_signers: signers } = request.body;
  const policies = changedPolicies(claim, request.body);
  return {
    owner,
    signers: signers === undefined ? authority.signers : referencesOfSigners(quorums, signers),
    isAutomated: authority.isAutomated && owner === authority.owner,
    ...(policies === undefined ? {} : { policies }),
  };
}

/**
 * Returns the pinned policies after a change.
 *
 * NOTE: the ids are signed, but the server chooses the secret of a policy that was not pinned before.
 */
function changedPolicies(
  { authority, pins }: KeyUseClaim,
  body: SignedRequestContent['body'],
): WalletPolicies | undefined {
  const before = authority.policies ?? pins?.before ?? noPolicies(authority.signers.length);
  return ifPinned(policiesAfter(before, body, (id) => pins?.named.find((pin) => pin.id === id) ?? null));
}

/**
 * Returns whether the request allows automations. An automation of a deposit address also converts deposits to the
 * wallet's own address.
 */
function attachesAutomations({ method, body }: SignedRequestContent, subpath: string): boolean {
  if (method !== 'POST') return false;
  const { deposit_address_strategy: strategy = 'dedicated' } = body;
  return Object.hasOwn(automatingPaths, subpath) && automatingPaths[subpath]!(strategy);
}

/**
 * Paths after the wallet id that attach automations. Each function tells whether the request's strategy needs
 * automations.
 */
export const automatingPaths: Readonly<Record<string, (strategy: unknown) => boolean>> = {
  '/automations/attach': () => true,
  '/deposit_accounts/crypto': (strategy) => strategy !== 'dedicated',
};

/**
 * Returns the part of the request's path after the wallet id.
 *
 * NOTE: only the server knows the external ids of wallets. An owner who signs one lets the server choose among the
 * owner's wallets.
 */
function subpathOf({ path }: SignedRequestContent, { walletId }: UseOccasion): string {
  const found = /^\/v1\/wallets\/([^/]+)(\/.*)?$/.exec(path);
  const named = found === null ? undefined : decodeURIComponent(found[1]!);
  if (named === walletId || named?.startsWith('ext_wal_') === true) return found![2] ?? '';
  throw new UnauthorizedUseError('the request was signed for a different wallet');
}

function referencesOfSigners(quorums: readonly QuorumRecord[], signers: unknown): string[] {
  if (!Array.isArray(signers)) throw new UnauthorizedUseError('expected a list of signers');
  return signers.map((signer: { signer_id?: unknown }) => referenceOfId(quorums, String(signer.signer_id)));
}
