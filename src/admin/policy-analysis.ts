import { requestValidators } from '../generated/request-validators.js';
import { createBodyCheck } from '../http/body-check.ts';
import type { UnitSource } from '../http/unit-of-work.ts';
import type { Services } from '../operation-context.ts';
import type { PolicyAnalysis } from '../sandbox/control-plane.ts';

/** Explains, replays and lints policies for the operator, directly on a database. */
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
