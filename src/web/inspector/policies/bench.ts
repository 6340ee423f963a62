import type { PolicyExplanation } from '../../../sandbox/generated/schemas.ts';
import { signExample } from '../wallet-facts.ts';

/** A request with the decision that the policy is expected to make. */
export interface BenchCase {
  readonly name: string;
  readonly operation: string;
  /** The body of the request, as text. */
  readonly request: string;
  readonly expected: 'allowed' | 'denied';
}

/** The operations whose requests can be evaluated under a draft. */
export const judgeableOperations = [
  'walletRpc',
  'rawSignWallet',
  'exportWallet',
  'transferFromWallet',
] as const;

const PREFIX = 'policy-cases/';

type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

/** Reads a policy's test cases from browser storage. Ignores anything else that is stored under the key. */
export function loadCases(store: Store, policyId: string): readonly BenchCase[] {
  try {
    const value: unknown = JSON.parse(store.getItem(PREFIX + policyId) ?? '[]');
    return Array.isArray(value) ? value.filter(isCase) : [];
  } catch {
    return [];
  }
}

/** Stores the test cases of a policy. Removes the entry for an empty list. */
export function saveCases(store: Store, policyId: string, cases: readonly BenchCase[]): void {
  if (cases.length === 0) store.removeItem(PREFIX + policyId);
  else store.setItem(PREFIX + policyId, JSON.stringify(cases));
}

function isCase(value: unknown): value is BenchCase {
  const { name, operation, request, expected } = (value ?? {}) as Record<string, unknown>;
  const isText = [name, operation, request].every((each) => typeof each === 'string');
  return isText && (expected === 'allowed' || expected === 'denied');
}

/** Returns a case with an example request for the chain type. A policy denies it by default. */
export function firstCase(chainType: string): BenchCase {
  const { operation, body } = signExample(chainType);
  return caseOf({ name: `Case of ${operation}`, operation, request: body, expected: 'denied' });
}

/** Returns a case for a known request, such as a recorded one. */
export function caseOf({
  request,
  ...known
}: Omit<BenchCase, 'request'> & { readonly request: object }): BenchCase {
  return { ...known, request: JSON.stringify(request, null, 2) };
}

/** Returns whether the decision was the expected one. */
export function hasPassed(
  { expected }: BenchCase,
  { decision }: Pick<PolicyExplanation, 'decision'>,
): boolean {
  return decision === expected;
}

/** Describes how many of the executed cases had the expected result, such as `2 of 3 as expected`. */
export function benchText(
  cases: readonly BenchCase[],
  results: readonly (BenchResult | undefined)[],
): string {
  const run = results.filter((result) => result !== undefined);
  const passed = cases.filter((each, index) => {
    const result = results[index];
    return result !== undefined && 'decision' in result && hasPassed(each, result);
  });
  return run.length === 0 ? `${cases.length} saved` : `${passed.length} of ${run.length} as expected`;
}

/** The result of a case: the explanation, or the reason why there is none. */
export type BenchResult = PolicyExplanation | { readonly error: string };
