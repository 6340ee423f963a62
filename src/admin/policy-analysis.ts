import { systemClock } from '../adapters/runtime.ts';
import type { DatabaseConfig } from '../config/config.ts';
import type { AnalysisContext } from '../domain/requests/policy-analysis/explain-policy.ts';
import {
  type LintInput,
  lintPolicy,
  type PolicyLint,
} from '../domain/requests/policy-analysis/lint-policy.ts';
import {
  type Replay,
  type ReplayInput,
  replayPolicy,
} from '../domain/requests/policy-analysis/replay-policy.ts';
import { requestValidators } from '../generated/request-validators.js';
import type { Services } from '../ports/operation-context.ts';
import type { PolicyAnalysis } from '../sandbox/control-plane.ts';
import type { UnitSource } from '../server/unit-of-work.ts';
import { createBodyCheck } from '../server/validation-issues.ts';
import { requireMigrated, withDatabase } from './administration.ts';

/** Returns the analysis of policies that works directly on a database. */
export function policyAnalysis({
  services: { clock, uses },
  database,
}: {
  readonly services: Pick<Services, 'clock' | 'uses'>;
  readonly database: UnitSource;
}): PolicyAnalysis {
  const checkRequest = createBodyCheck(requestValidators);
  return {
    async analyze(work) {
      await uses.flush();
      return work({ em: database.orm.em.fork(), nowMs: clock.now(), checkRequest });
    },
  };
}

/**
 * Evaluates a wallet's recorded requests under a draft policy, directly on the database without a server.
 *
 * @throws StartError when the database lacks migrations of this version.
 * @throws ApiError for invalid input.
 */
export function replayInDatabase(config: DatabaseConfig, input: ReplayInput): Promise<Replay> {
  return atDatabase(config, (context) => replayPolicy(context, input));
}

/**
 * Finds requests that avoid the rules of a policy by calling another RPC method.
 *
 * @throws the errors of `replayInDatabase`.
 */
export function lintInDatabase(config: DatabaseConfig, input: LintInput): Promise<PolicyLint> {
  return atDatabase(config, (context) => lintPolicy(context, input));
}

function atDatabase<T>(config: DatabaseConfig, work: (context: AnalysisContext) => Promise<T>): Promise<T> {
  const checkRequest = createBodyCheck(requestValidators);
  return withDatabase(config, async (database) => {
    await requireMigrated(database);
    return work({ em: database.orm.em.fork(), nowMs: systemClock.now(), checkRequest });
  });
}
