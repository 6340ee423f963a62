import { changeOperatorRole } from '../../domain/access/operators/change-operators.ts';
import { operatorView } from '../../domain/access/operators/operator-view.ts';
import type { OperatorHandler } from '../control-plane.ts';

export const run: OperatorHandler<'changeOperatorRole'> = async ({ path, body }, { change, clock, by }) => {
  const nowMs = clock.now();
  const wanted = { operatorId: path.operator_id, role: body.role };
  return operatorView(await change((em) => changeOperatorRole({ em, nowMs, by }, path.app_id, wanted)));
};
