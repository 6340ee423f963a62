import { UnauthorizedUseError } from './signed-evidence.ts';

/** A policy that cannot be exchanged for another one. */
export interface PolicyPin {
  readonly id: string;
  /** The name of its secret. */
  readonly seal: string;
}

/** The policies of a wallet; null without one, and for one that has never had an owner, which cannot be protected. */
export interface WalletPolicies {
  /** That of the wallet. */
  readonly wallet: PolicyPin | null;
  /** For each additional signer, in order: its own policy, or that of the wallet. */
  readonly signers: readonly (PolicyPin | 'wallet' | null)[];
}

/** A policy by its id; null for one without a secret. */
export type FindPin = (policyId: string) => PolicyPin | null;

/** The statements of a body about the policies of a wallet. */
export interface PolicyFields {
  readonly policy_ids?: unknown;
  readonly additional_signers?: unknown;
}

/** The policies of a wallet with no pins. */
export function noPolicies(signers: number): WalletPolicies {
  return { wallet: null, signers: Array.from({ length: signers }, () => null) };
}

/** The policies after a change; those that the body names again stay what they are. */
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

/** The same policies; undefined if none of them is pinned, so that such a wallet is sealed as it was before pins. */
export function ifPinned(policies: WalletPolicies): WalletPolicies | undefined {
  const isPin = (pin: PolicyPin | 'wallet' | null): boolean => pin !== null && pin !== 'wallet';
  return isPin(policies.wallet) || policies.signers.some(isPin) ? policies : undefined;
}

/** The policy of the party at this place, the owner first; null if none is pinned for it. */
export function policyOfParty({ wallet, signers }: WalletPolicies, place: number): PolicyPin | null {
  if (place === 0) return wallet;
  const own = signers[place - 1];
  // INVARIANT: there are as many as signers; what is missing must not be without a policy.
  if (own === undefined) throw new UnauthorizedUseError('expected the policies of each signer');
  return own === 'wallet' ? wallet : own;
}

function onlyId(ids: unknown): string | undefined {
  if (Array.isArray(ids) && ids.length <= 1 && ids.every((id) => typeof id === 'string')) return ids[0];
  throw new UnauthorizedUseError('expected at most one policy');
}
