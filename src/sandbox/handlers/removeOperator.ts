import { removeOperator } from '../../domain/access/operators/change-operators.ts';
import { operatorView } from '../../domain/access/operators/operator-view.ts';
import type { OperatorHandler } from '../control-plane.ts';

export const run: OperatorHandler<'removeOperator'> = async ({ path }, { change, clock, by }) => {
  const nowMs = clock.now();
  return operatorView(await change((em) => removeOperator({ em, nowMs, by }, path.app_id, path.operator_id)));
};
