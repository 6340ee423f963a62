import { intentExpired } from './intent-expired.ts';
import { keyRevoked } from './key-revoked.ts';
import { policyDenied } from './policy-denied.ts';
import { quorumShort } from './quorum-short.ts';
import type { Stage } from './stage.ts';
import { transactionReverted } from './transaction-reverted.ts';
import { webhookDown } from './webhook-down.ts';

/** An unhappy path. */
export interface Scenario {
  readonly name: string;
  /** What happens, in one sentence. */
  readonly summary: string;
  /** Plays it; returns commands that show more, or lead out of it. */
  play(stage: Stage): Promise<readonly string[]>;
}

export const scenarios: readonly Scenario[] = [
  quorumShort,
  policyDenied,
  intentExpired,
  keyRevoked,
  transactionReverted,
  webhookDown,
];
