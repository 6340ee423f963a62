import { inUnitOf, type OpenUnit, type UnitSource } from '../http/unit-of-work.ts';
import type { Services } from '../operation-context.ts';
import type { OperatorContext } from '../sandbox/control-plane.ts';

/** What operators' operations need of a running server. */
export function operatorContext({
  database,
  openUnit,
  services: { clock, entropy, ids },
}: {
  readonly database: UnitSource;
  readonly openUnit: OpenUnit;
  readonly services: Pick<Services, 'clock' | 'entropy' | 'ids'>;
}): Omit<OperatorContext, 'by'> {
  return {
    ...{ clock, entropy, ids },
    read: (work) => work(database.orm.em.fork()),
    change: inUnitOf(openUnit),
  };
}
