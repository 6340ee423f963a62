import { ApiError } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { isUniqueViolation } from '../../../storage/database-errors.ts';
import { type App, AppEntity, type AppSettings } from './app.entity.ts';
import { drawAppSecret, hashAppSecret } from './app-secret.ts';
import { getApp } from './find-app.ts';
import { keepTestCodes } from './test-accounts.ts';

/** The context of app verbs. They are called by an operator, so there is no authenticated app. */
export type AppContext = Pick<OperationContext, 'em' | 'entropy' | 'ids' | 'nowMs'>;

export interface NewApp {
  /** Default: generated, like the secret. */
  id?: string | undefined;
  name?: string | undefined;
  secret?: string | undefined;
  settings?: AppSettings | undefined;
}

/**
 * Creates an app. Only this result ever contains the secret's text.
 *
 * @throws ApiError resource_already_exists when there is an app with this id.
 */
export async function createApp(context: AppContext, input: NewApp): Promise<{ app: App; secret: string }> {
  const secret = input.secret ?? drawAppSecret(context.entropy);
  const id = input.id ?? context.ids.cuid();
  const taken = new ApiError('resource_already_exists', `an app with the id \`${id}\` already exists`);
  if ((await getApp(context.em, id)) !== undefined) throw taken;
  const app = context.em.create(AppEntity, {
    id,
    name: input.name ?? 'Unnamed app',
    secretHashes: [hashAppSecret(secret, context.nowMs)],
    settings: keepTestCodes({}, input.settings ?? {}),
    createdAtMs: context.nowMs,
  });
  try {
    await context.em.flush();
  } catch (error) {
    // Created by another process in the meantime.
    throw isUniqueViolation(error) ? taken : error;
  }
  return { app, secret };
}
