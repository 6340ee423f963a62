import { listOperatorRecords } from '../../domain/access/operators/list-operators.ts';
import { operatorRecordView } from '../../domain/access/operators/operator-view.ts';
import type { OperatorHandler } from '../control-plane.ts';

/** CHOICE: the page size of records when the request names none. */
const DEFAULT_LIMIT = 50;

export const run: OperatorHandler<'listOperatorRecords'> = async ({ path, query }, { change, clock, by }) => {
  const page = { before: query.before, limit: query.limit ?? DEFAULT_LIMIT };
  const nowMs = clock.now();
  const records = await change((em) => listOperatorRecords({ em, by, nowMs }, path.app_id, page));
  return { data: records.map(operatorRecordView) };
};
