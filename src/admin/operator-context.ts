import type { SqlEntityManager } from '@mikro-orm/sql';
import {
  hasOperators,
  type OperatorCaller,
  operatorWithSecret,
} from '../domain/access/operators/operator.ts';
import { ApiError } from '../errors.ts';
import type { Services } from '../ports/operation-context.ts';
import type { OperatorContext } from '../sandbox/control-plane.ts';
import { inUnitOf, type OpenUnit, type UnitSource } from '../server/unit-of-work.ts';

/** Returns the context in which operations of operators run. */
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

/**
 * Finds the operator whose secret is in the header of a request on the admin port.
 *
 * CHOICE: until the server has its first operator, any local program may act on every app without a header. The
 * removal of all operators does not open the port again.
 *
 * @param authorization `Bearer` and the secret.
 * @throws ApiError missing_or_invalid_token
 */
export async function identifyOperator(
  em: SqlEntityManager,
  authorization: string | undefined,
): Promise<OperatorCaller> {
  if (authorization === undefined) {
    if (await hasOperators(em)) {
      throw new ApiError(
        'missing_or_invalid_token',
        'expected the secret of an operator: `Authorization: Bearer …`',
      );
    }
    return { origin: 'admin_port' };
  }
  const [, secret] = /^Bearer +(\S+)$/i.exec(authorization) ?? [];
  const operator = secret === undefined ? undefined : await operatorWithSecret(em, secret);
  if (operator === undefined) {
    throw new ApiError('missing_or_invalid_token', 'the secret is not that of an operator');
  }
  const { id, appId, name, role } = operator;
  return { origin: 'admin_port', operator: { id, appId, name, role } };
}
