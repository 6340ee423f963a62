import type { DatabaseConfig } from '../config/config.ts';
import {
  addOperator,
  changeOperatorRole,
  listOperatorRecords,
  listOperators,
  type OperatorRole,
  operatorRecordView,
  operatorView,
  removeOperator,
} from '../domain/access/operators/operator.ts';
import { commandLine, inTransaction } from './administration.ts';

type AdministeredOperator = ReturnType<typeof operatorView>;
type AdministeredRecord = ReturnType<typeof operatorRecordView>;

/**
 * The commands for the operators of an app. Each call opens and closes the database. All methods throw ApiError
 * not_found.
 */
export interface OperatorAdministration {
  /** @throws ApiError not_found, invalid_request */
  add(
    appId: string,
    operator: { readonly name: string; readonly role: OperatorRole },
  ): Promise<AdministeredOperator & { readonly secret: string }>;
  list(appId: string): Promise<AdministeredOperator[]>;
  changeRole(appId: string, operatorId: string, role: OperatorRole): Promise<AdministeredOperator>;
  remove(appId: string, operatorId: string): Promise<AdministeredOperator>;
  /** Returns the records of the app, newest first. */
  records(appId: string, limit: number): Promise<AdministeredRecord[]>;
}

export function administerOperators(config: DatabaseConfig): OperatorAdministration {
  const by = commandLine;
  return {
    add: (appId, wanted) =>
      inTransaction(config, async (context) => {
        const { operator, secret } = await addOperator({ ...context, by }, appId, wanted);
        return { ...operatorView(operator), secret };
      }),
    list: (appId) =>
      inTransaction(config, async ({ em }) => (await listOperators({ em, by }, appId)).map(operatorView)),
    changeRole: (appId, operatorId, role) =>
      inTransaction(config, async (context) =>
        operatorView(await changeOperatorRole({ ...context, by }, appId, { operatorId, role })),
      ),
    remove: (appId, operatorId) =>
      inTransaction(config, async (context) =>
        operatorView(await removeOperator({ ...context, by }, appId, operatorId)),
      ),
    records: (appId, limit) =>
      inTransaction(config, async ({ em, nowMs }) =>
        (await listOperatorRecords({ em, by, nowMs }, appId, { limit })).map(operatorRecordView),
      ),
  };
}
