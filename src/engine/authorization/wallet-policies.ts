import { UnauthorizedUseError } from './signed-evidence.ts';

/** Pins a policy, so that it cannot be replaced by another policy. */
export interface PolicyPin {
  readonly id: string;
  /** The name of the policy's secret. */
  readonly seal: string;
}

/**
 * The pinned policies of a wallet. Null stands for no policy, and for a policy that never had an owner, which cannot
 * be protected.
 */
export interface WalletPolicies {
  /** The wallet's own policy. */
  readonly wallet: PolicyPin | null;
  /** For each additional signer, in order: the signer's own policy, or the wallet's. */
  readonly signers: readonly (PolicyPin | 'wallet' | null)[];
}

/** Finds a policy by its id; null for a policy without a secret. */
export type FindPin = (policyId: string) => PolicyPin | null;

/** The fields of a body that concern the policies of a wallet. */
export interface PolicyFields {
  readonly policy_ids?: unknown;
  readonly additional_signers?: unknown;
}

/** The policies of a wallet without pins. */
export function noPolicies(signers: number): WalletPolicies {
  return { wallet: null, signers: Array.from({ length: signers }, () => null) };
}

/** The policies after a change. Policies that the body names again keep their pins. */
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
 * The policies, or undefined if none is pinned. A wallet without pins is then sealed in the same way as before pins
 * existed.
 */
export function ifPinned(policies: WalletPolicies): WalletPolicies | undefined {
  const isPin = (pin: PolicyPin | 'wallet' | null): boolean => pin !== null && pin !== 'wallet';
  return isPin(policies.wallet) || policies.signers.some(isPin) ? policies : undefined;
}

/** The policy of the party at this index, where the owner is first; null if none is pinned for it. */
export function policyOfParty({ wallet, signers }: WalletPolicies, place: number): PolicyPin | null {
  if (place === 0) return wallet;
  const own = signers[place - 1];
  // INVARIANT: there is one entry per signer. A missing entry must not count as no policy.
  if (own === undefined) throw new UnauthorizedUseError('expected the policies of each signer');
  return own === 'wallet' ? wallet : own;
}

function onlyId(ids: unknown): string | undefined {
  if (Array.isArray(ids) && ids.length <= 1 && ids.every((id) => typeof id === 'string')) return ids[0];
  throw new UnauthorizedUseError('expected at most one policy');
}
