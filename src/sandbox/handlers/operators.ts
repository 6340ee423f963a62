import {
  addOperator as addOperatorVerb,
  changeOperatorRole as changeOperatorRoleVerb,
  listOperatorRecords as listOperatorRecordsVerb,
  listOperators as listOperatorsVerb,
  operatorRecordView,
  operatorView,
  removeOperator as removeOperatorVerb,
} from '../../domain/access/operators/operator.ts';
import type { OperatorHandler } from '../control-plane.ts';

export const listOperators: OperatorHandler<'listOperators'> = async ({ path }, { read, by }) => {
  const operators = await read((em) => listOperatorsVerb({ em, by }, path.app_id));
  return { data: operators.map(operatorView) };
};

export const addOperator: OperatorHandler<'addOperator'> = async ({ path, body }, context) => {
  const { change, clock, entropy, ids, by } = context;
  const nowMs = clock.now();
  const { operator, secret } = await change((em, notes) =>
    addOperatorVerb({ em, notes, entropy, ids, nowMs, by }, path.app_id, body),
  );
  return { ...operatorView(operator), secret };
};

export const changeOperatorRole: OperatorHandler<'changeOperatorRole'> = async (
  { path, body },
  { change, clock, by },
) => {
  const nowMs = clock.now();
  const wanted = { operatorId: path.operator_id, role: body.role };
  return operatorView(
    await change((em, notes) => changeOperatorRoleVerb({ em, notes, nowMs, by }, path.app_id, wanted)),
  );
};

export const removeOperator: OperatorHandler<'removeOperator'> = async ({ path }, { change, clock, by }) => {
  const nowMs = clock.now();
  return operatorView(
    await change((em, notes) => removeOperatorVerb({ em, notes, nowMs, by }, path.app_id, path.operator_id)),
  );
};

/** CHOICE: the page size if the request does not set one. */
const DEFAULT_LIMIT = 50;

export const listOperatorRecords: OperatorHandler<'listOperatorRecords'> = async (
  { path, query },
  { change, clock, by },
) => {
  const page = { before: query.before, limit: query.limit ?? DEFAULT_LIMIT };
  const nowMs = clock.now();
  const records = await change((em) => listOperatorRecordsVerb({ em, by, nowMs }, path.app_id, page));
  return { data: records.map(operatorRecordView) };
};
