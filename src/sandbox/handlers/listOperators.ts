import { listOperators } from '../../domain/access/operators/list-operators.ts';
import { operatorView } from '../../domain/access/operators/operator-view.ts';
import type { OperatorHandler } from '../control-plane.ts';

export const run: OperatorHandler<'listOperators'> = async ({ path }, { read, by }) => {
  const operators = await read((em) => listOperators({ em, by }, path.app_id));
  return { data: operators.map(operatorView) };
};
