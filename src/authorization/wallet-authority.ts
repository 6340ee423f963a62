import { hash } from 'node:crypto';
import { canonicalJson } from '../crypto/canonical-json.ts';
import { parseP256PublicKey } from '../crypto/p256.ts';
import { countQuorum, quorumKeys } from './quorum.ts';
import {
  byReference,
  currentQuorum,
  neutralUserId,
  type QuorumRecord,
  referenceOfId,
  referenceOfOwner,
  type UserKeys,
} from './quorum-records.ts';
import { isTransactionTask, requireRequested, type WalletTask } from './requested-task.ts';
import {
  type Evidence,
  type EvidentRequest,
  keysOf,
  readEvidence,
  UnauthorizedUseError,
} from './signed-evidence.ts';

/**
 * Who may use a wallet. The wallet's key is sealed under the digest of this, so no other authority opens it.
 *
 * INVARIANT: changes only by requests that the owner has signed.
 */
export interface WalletAuthority {
  /** The reference of the key quorum that owns it; null without an owner. */
  readonly owner: string | null;
  /** The references of the key quorums that may use it in place of the owner. */
  readonly signers: readonly string[];
  /** Whether the owner agreed to automations, which use it without a signed request. */
  readonly isAutomated: boolean;
}

/** What a caller presents to use a wallet's key. */
export interface AuthorizedUse {
  readonly authority: WalletAuthority;
  /** The key quorums that it names, as far as they are needed, and those nested in them. */
  readonly quorums: readonly QuorumRecord[];
  /** Keys of members who are users, as the caller knows them: they cannot be verified. */
  readonly userKeys: UserKeys;
  /** Undefined for an automation. */
  readonly evidence?: Evidence | undefined;
}

/** A wallet, and the time. */
export interface UseOccasion {
  readonly walletId: string;
  readonly appId: string;
  /** Unix ms. */
  readonly nowMs: number;
}

/** SHA-256 of the canonical JSON, hex. */
export function authorityDigest({ owner, signers, isAutomated }: WalletAuthority): string {
  return hash('sha256', canonicalJson({ owner, signers, isAutomated }));
}

/** CHOICE: how long after its expiry a request may still be waiting for its signature. */
const GRACE_MS = 60_000;

/**
 * Requires that the owner, or a signer where one may, has signed a request for this task.
 *
 * @throws UnauthorizedUseError, and what parsing throws for evidence that cannot be parsed.
 */
export function requireAuthorizedTask(use: AuthorizedUse, occasion: UseOccasion, task: WalletTask): void {
  const { authority, evidence } = use;
  if (authority.owner === null) return;
  if (evidence === undefined) {
    if (authority.isAutomated && isTransactionTask(task)) return;
    throw new UnauthorizedUseError('expected a request that the owner has signed');
  }
  const request = readEvidence(evidence);
  requireOccasion(request, occasion);
  requireRequested(request, restOfWallet(request, occasion), task);
  const parties = task.kind === 'sign' ? [authority.owner, ...authority.signers] : [authority.owner];
  requireParty(use, evidence, parties);
}

/** A request that changes who may use a wallet, which the owner has signed. Result: the authority after it. */
export function changedAuthority(use: AuthorizedUse, occasion: UseOccasion): WalletAuthority {
  const { authority, quorums, evidence } = use;
  if (evidence === undefined) throw new UnauthorizedUseError('expected a request that the owner has signed');
  const request = readEvidence(evidence);
  requireOccasion(request, occasion);
  const rest = restOfWallet(request, occasion);
  if (authority.owner !== null) requireParty(use, evidence, [authority.owner]);
  if (attachesAutomations(request, rest)) return { ...authority, isAutomated: true };
  if (request.method !== 'PATCH' || rest !== '')
    throw new UnauthorizedUseError('expected a change of a wallet');
  const owner = ownerAfter(request.body, authority, quorums);
  const { additional_signers: signers } = request.body;
  return {
    owner,
    signers: signers === undefined ? authority.signers : referencesOfSigners(quorums, signers),
    isAutomated: authority.isAutomated && owner === authority.owner,
  };
}

/** Deposits that are converted at the wallet's own address are converted by automations that it gets for this. */
function attachesAutomations({ method, body }: EvidentRequest, rest: string): boolean {
  if (method !== 'POST') return false;
  if (rest === '/automations/attach') return true;
  const { deposit_address_strategy: strategy = 'dedicated' } = body;
  return rest === '/deposit_accounts/crypto' && strategy !== 'dedicated';
}

function requireOccasion({ appId, expiryMs }: EvidentRequest, occasion: UseOccasion): void {
  if (appId !== occasion.appId) throw new UnauthorizedUseError('the signed request is of another app');
  // NaN, for a header that is no number, is not after any time.
  if (expiryMs !== undefined && !(expiryMs + GRACE_MS >= occasion.nowMs)) {
    throw new UnauthorizedUseError('the signed request has expired');
  }
}

/**
 * The path of the request after that of the wallet.
 *
 * NOTE: the external id of a wallet is known to the server only; who signs it has the server say which of the owner's
 * wallets it is.
 */
function restOfWallet({ path }: EvidentRequest, { walletId }: UseOccasion): string {
  const found = /^\/v1\/wallets\/([^/]+)(\/.*)?$/.exec(path);
  const named = found === null ? undefined : decodeURIComponent(found[1]!);
  if (named === walletId || named?.startsWith('ext_wal_') === true) return found![2] ?? '';
  throw new UnauthorizedUseError('the signed request is about something else');
}

function requireParty(
  { quorums, userKeys }: AuthorizedUse,
  evidence: Evidence,
  parties: readonly string[],
): void {
  const records = byReference(quorums);
  // One by one: the owner is the first, and mostly the one who has signed.
  for (const reference of parties) {
    if (!records.has(reference)) continue;
    const quorum = currentQuorum(reference, { records, userKeys, depth: 0 });
    if (countQuorum(quorum, keysOf(evidence, quorumKeys(quorum))).satisfied) return;
  }
  throw new UnauthorizedUseError('the signed request lacks signatures of those who may use the wallet');
}

function ownerAfter(
  { owner, owner_id: ownerId }: EvidentRequest['body'],
  authority: WalletAuthority,
  quorums: readonly QuorumRecord[],
): string | null {
  if (owner === null || (owner === undefined && ownerId === null)) return null;
  if (typeof ownerId === 'string') return referenceOfId(quorums, ownerId);
  if (owner === undefined) return authority.owner;
  const { public_key: key, user_id: userId } = owner as { public_key?: unknown; user_id?: unknown };
  if (typeof key === 'string') return referenceOfOwner(quorums, { publicKey: parseP256PublicKey(key) });
  if (typeof userId === 'string') return referenceOfOwner(quorums, { userId: neutralUserId(userId) });
  throw new UnauthorizedUseError('expected an owner');
}

function referencesOfSigners(quorums: readonly QuorumRecord[], signers: unknown): string[] {
  if (!Array.isArray(signers)) throw new UnauthorizedUseError('expected a list of signers');
  return signers.map((signer: { signer_id?: unknown }) => referenceOfId(quorums, String(signer.signer_id)));
}
