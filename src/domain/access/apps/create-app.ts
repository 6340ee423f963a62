import { ApiError } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { Tables } from '../../tables.ts';
import { drawAppSecret, hashAppSecret } from './app-secret.ts';
import type { App, AppSettings } from './find-app.ts';

/** What the verbs on apps need; an operator calls them, not an app, so there is no app in it. */
export type AppContext = Pick<OperationContext, 'em' | 'entropy' | 'ids' | 'nowMs'>;

export interface NewApp {
  /** Drawn when left out, like the secret. */
  id?: string | undefined;
  name?: string | undefined;
  secret?: string | undefined;
  settings?: AppSettings | undefined;
}

/**
 * Makes an app. Only this answer ever holds the secret's text.
 *
 * @throws ApiError resource_already_exists when there is an app with this id.
 */
export async function createApp(context: AppContext, input: NewApp): Promise<{ app: App; secret: string }> {
  const secret = input.secret ?? drawAppSecret(context.entropy);
  const app: App = {
    id: input.id ?? context.ids.cuid(),
    name: input.name ?? 'Unnamed app',
    secretHashes: [hashAppSecret(secret, context.nowMs)],
    settings: input.settings ?? {},
    createdAtMs: context.nowMs,
  };
  const { numInsertedOrUpdatedRows } = await context.em
    .getKysely<Tables>()
    .insertInto('apps')
    .values({
      id: app.id,
      name: app.name,
      secret_hashes: JSON.stringify(app.secretHashes),
      settings: JSON.stringify(app.settings),
      created_at_ms: app.createdAtMs,
    })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirstOrThrow();
  if (numInsertedOrUpdatedRows === 0n) {
    throw new ApiError('resource_already_exists', `an app with the id \`${app.id}\` exists already`);
  }
  return { app, secret };
}
