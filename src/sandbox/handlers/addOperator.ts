import { addOperator } from '../../domain/access/operators/change-operators.ts';
import { operatorView } from '../../domain/access/operators/operator-view.ts';
import type { OperatorHandler } from '../control-plane.ts';

export const run: OperatorHandler<'addOperator'> = async ({ path, body }, context) => {
  const { change, clock, entropy, ids, by } = context;
  const nowMs = clock.now();
  const { operator, secret } = await change((em) =>
    addOperator({ em, entropy, ids, nowMs, by }, path.app_id, body),
  );
  return { ...operatorView(operator), secret };
};
