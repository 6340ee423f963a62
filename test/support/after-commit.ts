import type { AfterCommitWork, OperationContext } from '../../src/ports/operation-context.ts';
import { inUnitOf, type UnitSource, unitsOf } from '../../src/server/unit-of-work.ts';

/**
 * The parts of a context for tests that call verbs without the pipeline. `finish` runs the work that was registered
 * for after the commit. Work registered for a refusal is dropped.
 */
export function afterCommitOf(database: UnitSource): Pick<
  OperationContext,
  'afterCommit' | 'afterRefusal' | 'noteSignatures' | 'inUnit'
> & {
  finish(): Promise<void>;
} {
  const left: AfterCommitWork[] = [];
  return {
    afterCommit: (work) => void left.push(work),
    afterRefusal: () => undefined,
    noteSignatures: () => undefined,
    inUnit: inUnitOf(unitsOf(database)),
    async finish() {
      for (const work of left.splice(0)) await work();
    },
  };
}
