import { notFound } from '../../../errors.ts';
import type { StoredOperator } from './operator.entity.ts';

/** Where an operator's call comes from. */
export type OperatorOrigin = 'admin_port' | 'command_line' | 'control_plane';

/** Who calls a verb that no app is authenticated for. */
export interface OperatorCaller {
  readonly origin: OperatorOrigin;
  /** Undefined for a caller that no secret identified; it may act on every app. */
  readonly operator?: Pick<StoredOperator, 'id' | 'appId' | 'name' | 'role'> | undefined;
}

/**
 * Refuses an operator of another app. What other apps have looks absent.
 *
 * @throws ApiError not_found
 */
export function requireOwnApp({ operator }: OperatorCaller, appId: string, noun: string): void {
  if (operator !== undefined && operator.appId !== appId) throw notFound(noun);
}
