import { notFound } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';

/**
 * Checks that a path names the app of the credentials.
 *
 * @throws ApiError not_found
 */
export function requireOwnApp({ app }: Pick<OperationContext, 'app'>, appId: string): void {
  if (appId !== app.id) throw notFound('App');
}
