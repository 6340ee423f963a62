import { listOperatorRecords } from '../../domain/access/operators/list-operators.ts';
import { operatorRecordView } from '../../domain/access/operators/operator-view.ts';
import type { OperatorHandler } from '../control-plane.ts';

/** CHOICE: the page size of records when the request names none. */
const DEFAULT_LIMIT = 50;

export const run: OperatorHandler<'listOperatorRecords'> = async ({ path, query }, { read, by }) => {
  const page = { before: query.before, limit: query.limit ?? DEFAULT_LIMIT };
  const records = await read((em) => listOperatorRecords({ em, by }, path.app_id, page));
  return { data: records.map(operatorRecordView) };
};
